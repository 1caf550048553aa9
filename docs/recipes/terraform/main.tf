# A Tidegate cluster from the templates that `npx cdk synth` wrote: its files in the bucket of
# `cdk bootstrap`, its stacks in CloudFormation. docs/terraform.md says how it is used.

terraform {
  required_version = ">= 1.9"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0"
    }
  }
}

data "aws_caller_identity" "here" {}
data "aws_partition" "here" {}

module "assets" {
  source     = "./assets"
  assembly   = var.assembly
  cluster    = var.cluster
  account_id = data.aws_caller_identity.here.account_id
  partition  = data.aws_partition.here.partition
  dns_suffix = data.aws_partition.here.dns_suffix
}

# Files, users and the ledger: Terraform refuses a plan that would end it.
resource "aws_cloudformation_stack" "data" {
  name         = "${module.assets.name}-data"
  template_url = module.assets.templates["${module.assets.name}-data"]
  iam_role_arn = module.assets.execution_roles["${module.assets.name}-data"]
  capabilities = ["CAPABILITY_NAMED_IAM"]
  tags         = var.tags

  lifecycle {
    prevent_destroy = true
  }
}

# Only where the cluster file says `images:`.
resource "aws_cloudformation_stack" "images" {
  for_each = toset([for name in keys(module.assets.templates) : name if endswith(name, "-images")])

  name         = each.key
  template_url = module.assets.templates[each.key]
  iam_role_arn = module.assets.execution_roles[each.key]
  capabilities = ["CAPABILITY_NAMED_IAM"]
  tags         = var.tags
}

resource "aws_cloudformation_stack" "cluster" {
  name         = module.assets.name
  template_url = module.assets.templates[module.assets.name]
  iam_role_arn = module.assets.execution_roles[module.assets.name]
  capabilities = ["CAPABILITY_NAMED_IAM"]
  tags         = var.tags
  depends_on   = [aws_cloudformation_stack.data, aws_cloudformation_stack.images]
}
