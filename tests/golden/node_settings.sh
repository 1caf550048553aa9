ROLE=node
HEAD=head.ec2.internal:6817
METADATA_USERS=root
SHAPES='g4dn.xlarge 4 15564 1 t4 1 0 0 - gpu 1
g4dn.12xlarge 48 186777 4 t4 1 0 0 - gpu 1
g5.12xlarge 48 186777 4 a10g 2 0 0 - gpu 1'
POOLS='gpu team-ml,fast
cheap -'
REGISTER_WAIT_S=120
SPOT_POLL_S=5
PROGRAMS='curl munge munged mount.efs nft scontrol lspci setpriv slurmd'
PACKAGES=''
DRIVER_BRANCH=''
POWER_LIMIT_W=''
GPU_CLOCK_MHZ=''
COMPUTE_MODE=''
CONTAINERS=''
NEURON_URL=https://apt.repos.neuron.amazonaws.com
USERS=''
LOG_GROUP=''
MIG=''
MPS=''
MUNGE_WAIT_S=120
SHARED_DIR=/shared
SHARED_WAIT_S=300
LUSTRE_DIR=/fsx
EFS_HELPER_URL=https://amazon-efs-utils.aws.com
