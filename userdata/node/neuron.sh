# shellcheck shell=bash
# needs: packages shape
# time_limit_s: 900
# The driver of AWS's own accelerators, on images without it: from AWS's repository, built for the
# kernel that runs. Source: AWS Neuron documentation, "Setup on Ubuntu".

readonly KEY=/usr/share/keyrings/neuron.asc LIST=/etc/apt/sources.list.d/neuron.list

check() {
    [[ $GRES != neuron ]] || [[ -e /dev/neuron0 ]]
}

apply() {
    if ! modinfo neuron >/dev/null 2>&1; then
        install_driver
    fi
    modprobe neuron
}

install_driver() {
    local codename
    if [[ -z $PACKAGES ]] || ! command -v apt-get >/dev/null; then
        refuse "the image lacks the Neuron driver"
    fi
    codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    curl -fsS -m 20 --retry 3 "$NEURON_URL/GPG-PUB-KEY-AMAZON-AWS-NEURON.PUB" | put_file "$KEY" 644
    put_file "$LIST" 644 <<<"deb [signed-by=$KEY] $NEURON_URL $codename main"
    apt_get update
    apt_get install --no-install-recommends "linux-headers-$(uname -r)" aws-neuronx-dkms aws-neuronx-tools
    apt-mark hold aws-neuronx-dkms
}
