"""Findings of cdk-nag's packs for HIPAA and NIST in prod, with an answer to each."""
