"""What guidellm counted and measured: report.py REPORT. The exit status is 1 if a request failed."""

import json
import sys

failed = False
for benchmark in json.load(open(sys.argv[1]))["benchmarks"]:
    metrics = benchmark["metrics"]
    totals = metrics["request_totals"]
    print(f"{totals['successful']} requests answered, {totals['errored']} errors, {totals['incomplete']} not ended")
    for name, unit in [("time_to_first_token_ms", "ms"), ("inter_token_latency_ms", "ms"), ("request_latency", "s"), ("output_tokens_per_second", "tokens/s")]:
        found = metrics[name]["successful"]
        print(f"{name}: median {found['median']:.2f} {unit}, p99 {found['percentiles']['p99']:.2f} {unit}, mean {found['mean']:.2f} {unit}")
    failed |= totals["errored"] > 0 or totals["successful"] == 0
sys.exit(failed)
