//! What a process says of flags that do not do what they do upstream, as somebody hears it who starts the program.
#![cfg(unix)]

use std::os::unix::process::CommandExt;
use std::process::Command;

const OLD: &str = "--lock-object-namespace=old";
const NEW: &str = "--leader-elect-resource-namespace=new";
const DEPRECATED: &str = "warning: --lock-object-namespace: deprecated, use --leader-elect-resource-namespace, which \
                          holds where both are given";
/// Of the kubeconfig that is not there: with it each of them ends before it does anything.
const NO_CLUSTER: &str = "error: cannot use the kubeconfig /nowhere/kubeconfig";

/// All lines that a process says on standard error until it ends for want of a cluster.
fn said(called: &str, typed: &[&str]) -> Vec<String> {
    let outcome = Command::new(env!("CARGO_BIN_EXE_katmai"))
        .arg0(called)
        .args(typed)
        .arg("--kubeconfig=/nowhere/kubeconfig")
        .output()
        .expect("it can be started");
    assert_eq!(outcome.status.code(), Some(1), "{outcome:?}");
    let said = String::from_utf8(outcome.stderr).expect("it is text");
    let mut lines: Vec<String> = said.lines().map(str::to_owned).collect();
    let last = lines.pop().unwrap_or_default();
    assert!(last.starts_with(NO_CLUSTER), "{called} {typed:?}: {said}");
    lines
}

/// S1.4: using the old flag logs one warning, whoever is started and however often it is given.
#[test]
fn s1_4_a_process_warns_of_the_old_flag_in_one_line() {
    for (verb, upstreams) in [
        ("agent-scheduler", "vc-agent-scheduler"),
        ("controllers", "vc-controller-manager"),
        ("hypernode-controller", "vc-hypernode-controller-manager"),
        ("scheduler", "vc-scheduler"),
    ] {
        for old in [&[OLD][..], &[OLD, NEW], &[NEW, OLD], &[OLD, OLD]] {
            let typed: Vec<&str> = [&[verb], old].concat();
            assert_eq!(said("katmai", &typed), [DEPRECATED], "{typed:?}");
        }
        assert_eq!(said(upstreams, &[OLD]), [DEPRECATED], "{upstreams}");
        assert_eq!(said("katmai", &[verb, NEW]), [] as [&str; 0], "{verb}");
    }
}
