//! Tests in a process of their own, under limits that the system enforces: an abort, a signal, an
//! allocation too much or a hang there is a failed case here.

use peak_alloc::PeakAlloc;
use std::{
    fs,
    io::Write as _,
    process::{Command, Stdio},
};

/// Counts what every test of this binary takes from the heap; it is read in children alone, where
/// one test runs at a time.
#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

const MARK: &str = "@@outcome";

/// What became of a case in the child.
#[derive(serde::Deserialize, serde::Serialize)]
pub(crate) struct Report {
    number: usize,
    /// The outcome, or its beginning.
    pub(crate) text: String,
    /// Bytes that the case took beyond those held before it: what it asked of the heap, or what the
    /// process came to occupy (stacks and mapped memory too), whichever is more.
    pub(crate) bytes: u64,
    /// Processor time of all threads: unlike the clock's, it does not depend on what else runs.
    pub(crate) millis: u64,
}

/// In the child: runs a case and tells the parent.
pub(crate) fn report(number: usize, case: impl FnOnce() -> String) {
    // Makes the high-water mark of the process what it occupies now; where a system forbids that,
    // only what goes beyond the mark so far is seen.
    let reset = fs::write("/proc/self/clear_refs", "5").is_ok();
    HEAP.reset_peak_usage();
    let occupied = status(if reset { "VmRSS:" } else { "VmHWM:" });
    let (heap, millis) = (HEAP.current_usage(), processor_millis());
    let text = case();
    let heap = (HEAP.peak_usage() - heap) as u64;
    let bytes = heap.max(status("VmHWM:").saturating_sub(occupied));
    let millis = processor_millis() - millis;
    let text = text.chars().take(300).collect();
    let line = serde_json::to_string(&Report { number, text, bytes, millis }).unwrap();
    println!("\n{MARK} {line}");
    std::io::stdout().flush().unwrap();
}

/// A line of `/proc/self/status` in bytes.
fn status(field: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
}

/// Processor time of the process, in the system's steps of 10 ms.
fn processor_millis() -> u64 {
    let text = fs::read_to_string("/proc/self/stat").unwrap();
    // Behind the name, which may hold anything, user and system time are numbers 12 and 13.
    let fields = text.rsplit(')').next().unwrap().split_whitespace().skip(11).take(2);
    fields.map(|ticks| ticks.parse::<u64>().unwrap() * 10).sum()
}

/// Runs the ignored test `name` of this binary with so many bytes of address space and seconds of
/// processor time; what it reported, in order.
pub(crate) fn run(name: &str, bytes: u64, seconds: u64) -> Vec<Report> {
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
    let reports: Vec<Report> = printed
        .lines()
        .filter_map(|line| line.strip_prefix(MARK))
        .map(|line| serde_json::from_str(line.trim()).unwrap())
        .collect();
    assert!(reports.iter().enumerate().all(|(at, report)| at == report.number));
    let errors = String::from_utf8_lossy(&child.stderr);
    let last = reports.len();
    assert!(child.status.success(), "{} after case {last}: {errors}", child.status);
    assert!(!errors.contains("panicked"), "{errors}");
    reports
}
