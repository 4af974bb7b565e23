#!/usr/bin/env bash
# SPDX-FileCopyrightText: the ar-tune authors
# SPDX-License-Identifier: Apache-2.0
#
# Everything that needs a GPU, in one go, on binaries built elsewhere: checks, faults, sanitizer, tuning, the example.
#
#   tests/gpu/acceptance.sh BIN OUT     BIN holds ar-tune, artune-soak, gpu_group, gpu_overlap and example_all_reduce (built with ARTUNE_TEST_FAULTS);
#                                       documents and logs go to OUT. ARTUNE_NCCL_LIB names an NCCL of 2.30 or newer.
# With fewer than two GPUs the ranks share one: a rehearsal. Prints a short table; exit 1 when anything failed.
set -u
bin=$(cd "$1" && pwd)
out=$(mkdir -p "$2" && cd "$2" && pwd)
export PATH="$bin:$PATH"
failed=0
say() { printf '%-62s %s\n' "$1" "$2"; }
# expect STATUS NAME COMMAND…: runs with its output in $out/NAME.txt
expect() {
  local wanted=$1 name=$2 started=$SECONDS; shift 2
  timeout 280 "$@" >"$out/$name.txt" 2>&1
  local got=$?
  if [ "$got" = "$wanted" ]; then say "$name" "ok (exit $got, $((SECONDS - started)) s)"
  else say "$name" "FAILED: exit $got, expected $wanted"; tail -n 8 "$out/$name.txt"; failed=1; fi
}
# has NAME TEXT: the output of an expect() holds the text
has() { grep -qF -- "$2" "$out/$1.txt" || { say "$1" "FAILED: no '$2' in its output"; tail -n 5 "$out/$1.txt"; failed=1; }; }

gpus=$(nvidia-smi -L | wc -l)
share() { echo $((($1 + gpus - 1) / gpus)); }

expect 0 gpu_group gpu_group
expect 0 gpu_overlap gpu_overlap
if command -v compute-sanitizer >/dev/null; then
  expect 0 memcheck compute-sanitizer --tool memcheck --error-exitcode 9 gpu_group --gtest_filter='Ranks/OnGpu.*/0:Ranks/OnGpu.Every*/1'
fi
expect 0 soak artune-soak --calls 2e5 --duration 20s
small=(--ranks-per-gpu "$(share 2)" --ranks 2 --sizes 4K,64K --dtype bf16 --mode graph --budget 5s)
ARTUNE_TEST_FAULT='crash:p2p/one-shot/ll@4096' expect 0 fault_crash ar-tune sweep "${small[@]}" -o "$out/fault_crash.json"
has fault_crash 'crash'
ARTUNE_TEST_FAULT='hang:p2p/one-shot/flag@4096' expect 0 fault_hang ar-tune sweep "${small[@]}" -o "$out/fault_hang.json"
has fault_hang 'waited for rank 1 and gave up'
ARTUNE_TEST_FAULT='wrong:ce/push@65536' expect 0 fault_wrong ar-tune sweep "${small[@]}" -o "$out/fault_wrong.json"
has fault_wrong 'wrong'
ARTUNE_TEST_FAULT='wrong:ce/push@65536' expect 4 fault_strict ar-tune sweep "${small[@]}" --strict -o "$out/fault_strict.json"
expect 0 no_nccl env ARTUNE_NCCL_LIB= ar-tune sweep "${small[@]}" --nccl "" -o "$out/no_nccl.json"
expect 2 bad_device ar-tune sweep --devices 99 --sizes 4K
expect 2 no_room ar-tune sweep --ranks $((gpus + 1)) --sizes 4K

# A profile of lossy rows only, so that the dispatch has no exact way out; every sum of the example is still exact.
lossy=(--ranks-per-gpu "$(share 4)" --ranks 4 --dtype f32 --wire bf16 --sizes 4K,64K,1M --budget 15s)
expect 0 wire_sweep ar-tune sweep "${lossy[@]}" -o "$out/wire_sweep.json"
expect 0 wire_tune ar-tune tune --from "$out/wire_sweep.json" -o "$out/wire_profile.json"
has wire_tune 'f32 as bf16 on the wire'
expect 0 wire_tuned ar-tune sweep "${lossy[@]}" --path tuned --strict --profile "$out/wire_profile.json" -o "$out/wire_tuned.json"
has wire_tuned 'every sum checked and right'
NCCL_MULTI_RANK_GPU_ENABLE=1 NCCL_NVLS_ENABLE=0 CUDA_DEVICE_MAX_CONNECTIONS=32 expect 0 wire_example \
  example_all_reduce --ranks 4 --ranks-per-gpu "$(share 4)" --calls 3000 --bf16-wire 1 --profile "$out/wire_profile.json"
has wire_example 'f32 as bf16 on the wire'
expect 0 wire_pays ar-tune tune --ranks-per-gpu "$(share 4)" --ranks 4 --dtype f32 --wire native,bf16 --min 1K --max 16M --mode graph \
  -o "$out/wire_pays.json" --sweep-output "$out/wire_pays_sweep.json"

expect 0 overlap ar-tune sweep --ranks-per-gpu "$(share 2)" --ranks 2 --sizes 16M --mode graph --candidate nccl,host/copy-engine \
  --overlap --compute-us 10000 --budget 30s -o "$out/overlap.json"
for ranks in 2 4; do
  expect 0 tune_$ranks ar-tune tune --ranks-per-gpu "$(share $ranks)" --ranks $ranks --dtype bf16,f32 --min 256 --max 16M \
    -o "$out/profile_$ranks.json" --sweep-output "$out/sweep_$ranks.json"
  expect 0 tuned_$ranks ar-tune sweep --ranks-per-gpu "$(share $ranks)" --ranks $ranks --dtype bf16 --min 256 --max 16M --mode graph \
    --path tuned,nccl,p2p,host,ce --profile "$out/profile_$ranks.json" -o "$out/tuned_$ranks.json"
  NCCL_MULTI_RANK_GPU_ENABLE=1 NCCL_NVLS_ENABLE=0 CUDA_DEVICE_MAX_CONNECTIONS=32 expect 0 example_$ranks \
    example_all_reduce --ranks $ranks --ranks-per-gpu "$(share $ranks)" --calls 10000 --profile "$out/profile_$ranks.json"
  tail -n 2 "$out/example_$ranks.txt"
done
python3 - "$out" <<'P'
import json, sys
out = sys.argv[1]
print("\nbeside compute, 16M bf16, N = 2: what the load loses, what reductions keep of their speed alone")
for row in [r for r in json.load(open(f"{out}/overlap.json"))["rows"] if r["load"] == "overlap"]:
    for one in row["overlap"]:
        lost = one["compute_beside_us"] / one["compute_idle_us"] - 1
        kept = one["reduction_idle_us"] / one["reduction_beside_us"]
        missed = row["candidate"] == "host/copy-engine" and (lost > 0.05 or kept < 0.7)
        print(f"{row['candidate']:>20s} {row.get('chunk_bytes', row.get('max_ctas', 0)):8d} {one['order']:>16s} {lost:8.1%} {kept:8.1%}"
              f"{'  MORE THAN 5 % LOST OR LESS THAN 70 % KEPT' if missed else ''}")
for ranks in (2, 4):
    rows = [r for r in json.load(open(f"{out}/tuned_{ranks}.json"))["rows"] if r["mode"] == "graph"]
    print(f"\nN = {ranks}, bf16, graph: us per call; ratios to NCCL's best of the same run")
    print("     bytes    NCCL  best p2p   ratio  best of all   ratio                       tuned  tuned/best")
    for size in sorted({r["bytes"] for r in rows}):
        at = [r for r in rows if r["bytes"] == size]
        def best(keep): return min((r for r in at if keep(r)), key=lambda r: r["median_us"], default=None)
        nccl, p2p = best(lambda r: r["candidate"] == "nccl"), best(lambda r: r["candidate"].startswith("p2p/"))
        every, tuned = best(lambda r: r["candidate"] != "tuned"), best(lambda r: r["candidate"] == "tuned")
        if not (nccl and p2p and every and tuned): continue
        beyond = "" if tuned["ci_low_us"] <= 1.05 * every["ci_high_us"] else "  MORE THAN 5 %"
        print(f"{size:10d} {nccl['median_us']:7.2f} {p2p['median_us']:9.2f} {p2p['median_us']/nccl['median_us']:7.2f} {every['median_us']:12.2f}"
              f" {every['median_us']/nccl['median_us']:7.2f} {every['candidate']:>20s} {tuned['median_us']:8.2f} {tuned['median_us']/every['median_us']:8.3f}{beyond}")
P
exit $failed
