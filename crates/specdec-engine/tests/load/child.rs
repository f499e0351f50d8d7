//! Tests in a process of their own, under limits that the system enforces: an abort, a signal, an
//! allocation too much or a hang there is a failed case here.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

const MARK: &str = "@@outcome";

/// In the child: runs a case and tells the parent.
pub(crate) fn report(number: usize, case: impl FnOnce() -> String) {
    let text: String = case().chars().take(300).collect();
    let line = serde_json::to_string(&(number, text)).unwrap();
    println!("\n{MARK} {line}");
    std::io::stdout().flush().unwrap();
}

/// Runs the ignored test `name` of this binary with so many bytes of address space and seconds of
/// processor time; what it reported, in order.
pub(crate) fn run(name: &str, bytes: u64, seconds: u64) -> Vec<String> {
    let limits =
        format!("ulimit -c 0; ulimit -v {}; ulimit -t {seconds}; exec \"$0\" \"$@\"", bytes >> 10);
    let child = Command::new("sh")
        .args(["-c", &limits])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--ignored", "--nocapture", "--test-threads=1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&child.stdout);
    let reports: Vec<(usize, String)> = printed
        .lines()
        .filter_map(|line| line.strip_prefix(MARK))
        .map(|line| serde_json::from_str(line.trim()).unwrap())
        .collect();
    assert!(reports.iter().enumerate().all(|(at, report)| at == report.0));
    let errors = String::from_utf8_lossy(&child.stderr);
    let last = reports.len();
    assert!(child.status.success(), "{} after case {last}: {errors}", child.status);
    assert!(!errors.contains("panicked"), "{errors}");
    reports.into_iter().map(|(_, text)| text).collect()
}
