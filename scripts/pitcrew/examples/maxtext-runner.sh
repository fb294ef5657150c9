#!/bin/sh
# MaxText by its own runner, on every worker of every slice whose name begins with llama-8b. Call it as maxtext-job.sh. The runner
# holds one connection to each worker: it suits a try. On TPUs that are created again nobody runs it again; pitcrew install
# --all-workers does.
# https://github.com/AI-Hypercomputer/maxtext
set -eu
exec python3 multihost_runner.py \
	--TPU_PREFIX=llama-8b --ZONE=ZONE --PROJECT=PROJECT \
	--COMMAND='export PATH="$PWD:$PATH"; bash setup.sh && sh maxtext.sh'
