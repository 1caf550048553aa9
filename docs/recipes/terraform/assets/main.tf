# Uploads what a cloud assembly (`cdk synth`) holds of one cluster, and tells where each stack's
# template lies then.

terraform {
  required_version = ">= 1.9" # a validation that asks two variables; terraform_data
}

variable "assembly" {
  description = "folder that `npx cdk synth` wrote"
  type        = string
}

variable "cluster" {
  description = "name of the cluster, as in its file"
  type        = string

  validation {
    condition     = can(file("${var.assembly}/tidegate-${var.cluster}.template.json"))
    error_message = "The assembly holds no cluster ${var.cluster}: run `npx cdk synth --quiet` first, and name the cluster as its file does."
  }
}

variable "account_id" {
  description = "AWS account, twelve digits"
  type        = string
}

variable "partition" {
  description = "aws, aws-cn or aws-us-gov"
  type        = string
}

variable "dns_suffix" {
  description = "of AWS's addresses in the partition, like amazonaws.com"
  type        = string
}

locals {
  name     = "tidegate-${var.cluster}"
  all      = ["${local.name}-data", "${local.name}-images", local.name]
  stacks   = [for each in local.all : each if fileexists("${var.assembly}/${each}.template.json")]
  manifest = jsondecode(file("${var.assembly}/manifest.json")).artifacts

  destinations = flatten([
    for stack in local.stacks : [
      for id, asset in jsondecode(file("${var.assembly}/${stack}.assets.json")).files : [
        for destination in asset.destinations : {
          path   = "${var.assembly}/${asset.source.path}"
          bucket = replace(destination.bucketName, "$${AWS::AccountId}", var.account_id)
          key    = destination.objectKey
          region = destination.region
        }
      ]
    ]
  ])

  # Stacks share assets: each file is uploaded once.
  objects = { for each in local.destinations : each.key => each... }

  # CloudFormation reads a template from S3 by an address of HTTPS.
  templates = {
    for stack in local.stacks : stack => replace(
      replace(
        local.manifest[stack].properties.stackTemplateAssetObjectUrl,
        "$${AWS::AccountId}", var.account_id
      ),
      "/^s3://([^/]+)//",
      "https://$1.s3.${local.region}.${var.dns_suffix}/"
    )
  }

  region = one(distinct([for each in local.destinations : each.region]))
}

# By the AWS CLI, not as aws_s3_object: that would delete what the next assembly does not name, and
# nodes of the version before still boot from theirs, as CloudFormation rolls back to its own.
# The key is the digest of the file: what is there already is the same. `npx cdk gc` clears up.
resource "terraform_data" "upload" {
  for_each         = local.objects
  triggers_replace = [each.key, each.value[0].bucket]

  provisioner "local-exec" {
    command = "aws s3 cp --only-show-errors \"$FILE\" \"$ADDRESS\" --region \"$REGION\""
    environment = {
      FILE    = each.value[0].path
      ADDRESS = "s3://${each.value[0].bucket}/${each.key}"
      REGION  = each.value[0].region
    }
  }
}

output "name" {
  value = local.name
}

output "region" {
  description = "that of the cluster file"
  value       = local.region
}

output "templates" {
  description = "by the name of the stack: where its template lies"
  value       = local.templates
  depends_on  = [terraform_data.upload]
}

output "execution_roles" {
  description = "by the name of the stack: the role that CloudFormation acts as, from `cdk bootstrap`"
  value = {
    for stack in local.stacks : stack => replace(
      replace(
        local.manifest[stack].properties.cloudFormationExecutionRoleArn,
        "$${AWS::AccountId}", var.account_id
      ),
      "$${AWS::Partition}", var.partition
    )
  }
}
