"""AWS behind the ports. boto3 is imported here alone, and at the first use: it takes a third of a second."""
