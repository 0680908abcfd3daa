#!/bin/sh
# Loads a server with guidellm: run.sh URL MODEL [FORMAT [STREAMS [REQUESTS]]]. FORMAT is a path of the OpenAI API.
set -eu
url=$1 model=$2 format=${3:-/v1/completions} streams=${4:-8} requests=${5:-64}
here=$(cd "$(dirname "$0")" && pwd)
out=$(mktemp -d)
trap 'rm -r "$out"' EXIT
# Its prompts are a file, so that it needs no tokenizer and no network.
python3 "$here/prompts.py" "$requests" >"$out/prompts.jsonl"
export HF_HUB_OFFLINE=1 HF_DATASETS_OFFLINE=1 TRANSFORMERS_OFFLINE=1 DO_NOT_TRACK=1 GUIDELLM__LOG_DISABLED=true
"${GUIDELLM:-guidellm}" run \
  --backend "kind=openai_http,target=$url,model=$model,request_format=$format,max_tokens=32,http2=false" \
  --profile "kind=concurrent,streams=$streams" --constraint "kind=max_requests,count=$requests" \
  --data "kind=json_file,path=$out/prompts.jsonl" --output "kind=json,path=$out/report.json" \
  --disable-console >"$out/log" 2>&1 || { tail -n 40 "$out/log"; exit 1; }
python3 "$here/report.py" "$out/report.json"
