"""What cdk-nag's packs for HIPAA and NIST find in prod, with an answer to each."""
