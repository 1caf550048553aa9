"""The deployment: one CloudFormation stack per cluster file, built with the AWS CDK."""
