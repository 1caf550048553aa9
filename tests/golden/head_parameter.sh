BUNDLE=cdk-hnb659fds-assets-123456789012-us-east-1/bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb.tgz
SHA256=cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc
MUNGE_SECRET=arn:aws:secretsmanager:us-east-1:123456789012:secret:munge-AbCdEf
FILE_SYSTEM=fs-0123456789abcdef0
DATA_VOLUME=''
AGENT_ENV='TIDEGATE_BUCKET="tidegate-dev"
TIDEGATE_BUS="tidegate-dev"'
AGENT=cdk-hnb659fds-assets-123456789012-us-east-1/dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd.tgz
