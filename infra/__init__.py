"""The CDK app: `config` says what an environment is, a file each builds a family of resources, `app` joins them."""
