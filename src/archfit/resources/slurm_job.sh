#!/bin/bash
# Submit with sbatch; edit the time limit and add a partition or account as your cluster wants.
#SBATCH --job-name=archfit-{name}
#SBATCH --array=0-{last_task}
#SBATCH --ntasks=1
#SBATCH --cpus-per-task={cores}
{gpu}#SBATCH --time=24:00:00
#SBATCH --output={log}
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:USR1@{seconds_to_save}
{export}
time_is_up=
trap 'time_is_up=yes; kill -TERM "$runner"' USR1
trap 'kill -TERM "$runner"' TERM
{command} &
runner=$!
wait "$runner"; status=$?
while kill -0 "$runner" 2>/dev/null; do wait "$runner"; status=$?; done  # a trap ends a wait
if [ "$time_is_up" ] && [ "$status" -gt 128 ]; then scontrol requeue "$SLURM_JOB_ID"; fi
exit "$status"
