output "stack" {
  description = "outputs of the cluster's stack"
  value       = aws_cloudformation_stack.cluster.outputs
}
