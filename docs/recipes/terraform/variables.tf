variable "cluster" {
  description = "name of the cluster, as in its file"
  type        = string
}

variable "assembly" {
  description = "folder that `npx cdk synth --quiet` wrote"
  type        = string
  default     = "cdk.out"
}

variable "tags" {
  description = "tags of the stacks, which CloudFormation puts on what they hold"
  type        = map(string)
  default     = {}
}
