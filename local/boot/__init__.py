"""Head and nodes on this computer: what they are told, and the AWS that tells them."""
