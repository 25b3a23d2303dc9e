#!/bin/sh
# The main job in one look: two models on shipped clusters, from one device to 1,024.
#   demo.sh SIBYL
set -eu
sibyl=$1

run() {
  echo
  echo "\$ sibyl $*"
  "$sibyl" "$@"
}

run scale zoo:resnet50 --cluster abci-v100 --devices 1..1024 --batch 64/device --optimizer momentum
run scale zoo:gpt2 --cluster dgx-a100 --devices 1..1024 --batch 16/device --optimizer adamw --precision bf16
run predict zoo:resnet50 --cluster abci-v100 --devices 64 --batch 64/device --optimizer momentum
run predict zoo:gpt2 --cluster dgx-a100 --devices 64 --batch 16/device --optimizer adamw --precision bf16
