"""What inference-perf counted and measured: report.py REPORT REQUESTS. The exit status is 1 unless all requests were answered."""

import json
import sys

report = json.load(open(sys.argv[1]))
good, bad = report["successes"], report["failures"]
print(f"{good['count']} requests answered, {bad['count']} errors")
for name, found in (good.get("latency") or {}).items():
    if found:
        print(f"{name}: median {found['median']:.4f}, p99 {found['p99']:.4f}, mean {found['mean']:.4f}")
sys.exit(bad["count"] > 0 or good["count"] != int(sys.argv[2]))
