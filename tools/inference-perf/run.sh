#!/bin/sh
# Loads a server with inference-perf: run.sh URL MODEL [API [STREAMS [REQUESTS]]]. API is completion, chat or anthropic_messages.
set -eu
url=$1 model=$2 api=${3:-completion} streams=${4:-8} requests=${5:-64}
here=$(cd "$(dirname "$0")" && pwd)
folder=$(dirname "${INFERENCE_PERF:-$(command -v inference-perf)}")
out=$(mktemp -d)
trap 'rm -r "$out"' EXIT
# A tokenizer of a few words, so that none is fetched: it makes the prompts and counts their tokens.
"$folder/python" "$here/tokenizer.py" "$out/tokenizer"
# Only its fixed prompts are for all of its APIs.
case $api in
anthropic_messages) data='{type: mock}' ;;
*) data="{type: shared_prefix, shared_prefix: {num_groups: 4, num_prompts_per_group: $requests, system_prompt_len: 32, question_len: 16, output_len: 24}}" ;;
esac
cat >"$out/config.yml" <<EOF
api: {type: $api, streaming: true}
server: {type: vllm, model_name: $model, base_url: "$url", ignore_eos: true}
tokenizer: {pretrained_model_name_or_path: $out/tokenizer}
data: $data
load:
  type: concurrent
  stages: [{num_requests: $requests, concurrency_level: $streams}]
  num_workers: 1
storage: {local_storage: {path: $out/report}}
EOF
export HF_HUB_OFFLINE=1 HF_DATASETS_OFFLINE=1 TRANSFORMERS_OFFLINE=1
"$folder/inference-perf" -c "$out/config.yml" >"$out/log" 2>&1 || { tail -n 40 "$out/log"; exit 1; }
"$folder/python" "$here/report.py" "$out/report"/summary_lifecycle_metrics.json "$requests"
