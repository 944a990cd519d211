# The examples that somebody has to ask, tell or wait for something; `.ci/run` runs the others. Sourced by
# tests/kubectl/run.

needs commands || { leave_out; return 0; }

# A flag that shapes a plane asks for one of its own.
alone() { katmai run --port 0 --timeout 60s "$@"; }
# ── recipes of docs/discovery.md (S2.9), and pods that wait for each other (S2.5) ─────────────
says "S2.9: a start script that tries again finds who comes later" "retry-coordinator-0.retry is found after [1-9]" alone examples/discovery/retry.yaml
says "S2.9: what is ready by its probe can be found at once" "client-0 \| ready-server-2.ready says: server 2" alone examples/discovery/ready.yaml
says "S2.5: two pods that are ready when they have found each other both become so" "both-0 \| both found each other" alone examples/discovery/mutual.yaml
sed 's/svc: \[\]/svc: ["--publish-not-ready-addresses=false"]/' examples/discovery/mutual.yaml > "$home/never.yaml"
expect "S2.5: where the job hides who is not ready, they do not" 3 "vcjob/mutual +Running" katmai run --port 0 --timeout 5s "$home/never.yaml"
