"""The CDK app: environments are data, constructs build, stacks compose, `app` puts them together."""
