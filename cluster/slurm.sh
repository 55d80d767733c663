#!/bin/bash
# Slurm: a Ray of this job's own, one scenario, and everything is taken down again.
#   sbatch --nodes=4 cluster/slurm.sh scenarios/quickstart.yaml runs/on-slurm
# OUT has to be in a folder that this job's nodes share, or at least survives on the first of them.
# The same line again continues a run that was cut off, by a time limit say.
#SBATCH --job-name=raydp-sim
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=4
#SBATCH --time=01:00:00
#SBATCH --output=raydp-sim-%j.log
# Told a minute before the end, so that Ray goes in order; checkpoints are made all along anyway.
#SBATCH --signal=B:TERM@60
set -u

scenario=${1:?usage: sbatch cluster/slurm.sh SCENARIO OUT [--set A.B=VALUE ...]}
out=${2:?usage: sbatch cluster/slurm.sh SCENARIO OUT [--set A.B=VALUE ...]}
shift 2

# The environment that has raydp-sim, on every node under the same path; empty: PATH has it. Or an
# image of cluster/Dockerfile, a path that nodes share or docker://REGISTRY/raydp-sim.
within=()
if [ -n "${RAYDP_SIM_IMAGE:-}" ]; then within=(apptainer exec --bind "$PWD" "$RAYDP_SIM_IMAGE"); fi
if [ -n "${RAYDP_SIM_ENV:-}" ]; then PATH="$RAYDP_SIM_ENV/bin:$PATH"; fi
export PATH RAY_USAGE_STATS_ENABLED=0
# Only this job's processes may join: a token that nobody else knows, in the environment of its steps.
export RAY_AUTH_MODE=token
RAY_AUTH_TOKEN=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
export RAY_AUTH_TOKEN

mapfile -t hosts < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
port=$((20000 + SLURM_JOB_ID % 20000))
cpus=${SLURM_CPUS_PER_TASK:-1}
folder=$(mktemp -d "/tmp/rs-slurm-$SLURM_JOB_ID-XXXX")
steps=()

finish() {
  for step in "${steps[@]}"; do kill "$step" 2> /dev/null; done
  wait
  rm -rf "$folder"
}
trap finish EXIT
trap 'exit 143' TERM INT

start() {  # NODE WORDS...: ray start on a node, until this job ends
  local node=$1
  shift
  srun --nodes=1 --ntasks=1 --overlap --nodelist="$node" \
    "${within[@]}" ray start "$@" --num-cpus="$cpus" --disable-usage-stats --block > "$folder/$node.log" 2>&1 &
  steps+=("$!")
}

address=$(srun --nodes=1 --ntasks=1 --overlap --nodelist="${hosts[0]}" hostname --ip-address)
address="${address%% *}:$port"
start "${hosts[0]}" --head --port="$port" --include-dashboard=false --temp-dir="$folder/ray"
for ((number = 1; number < ${#hosts[@]}; number++)); do
  start "${hosts[$number]}" --address="$address"
done

# Every node has to be there before clients are spread over them.
srun --nodes=1 --ntasks=1 --overlap --nodelist="${hosts[0]}" \
  "${within[@]}" python -m raydp_sim.actors.gathered "$address" "${#hosts[@]}" || { cat "$folder"/*.log; exit 3; }

command=(run "$scenario" --out "$out" "$@")
if [ -f "$out/scenario.yaml" ]; then command=(resume "$out"); fi
srun --nodes=1 --ntasks=1 --overlap --nodelist="${hosts[0]}" \
  "${within[@]}" raydp-sim "${command[@]}" --address "$address" &
steps+=("$!")
wait "$!"
code=$?
exit "$code"
