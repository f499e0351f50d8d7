//! How many threads this process may keep busy.

use std::fs;
use std::path::{Path, PathBuf};

/// Threads that can run at once: processors of the affinity mask, but no more than the control
/// group's CPU quota, rounded up. At least 1.
///
/// A quota of 1.5 processors counts as 2: two threads then do 1.5 threads' work, one would do 1.
pub fn available_threads() -> usize {
    let quota = quota(Path::new("/"));
    affinity().min(quota.unwrap_or(usize::MAX)).max(1)
}

/// Processors that the scheduler may put this thread on.
#[cfg(target_os = "linux")]
fn affinity() -> usize {
    // SAFETY: a `cpu_set_t` is a plain bit mask, for which all zeros is a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the size is that of `set`, which the kernel fills.
    let refused = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) };
    if refused != 0 {
        // The mask is too short for a machine of more than 1024 processors.
        return std::thread::available_parallelism().map_or(1, usize::from);
    }
    // SAFETY: counts the bits of a mask.
    unsafe { libc::CPU_COUNT(&set) as usize }
}

#[cfg(not(target_os = "linux"))]
fn affinity() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Least quota, rounded up, of the process's control groups and their ancestors, under `root`.
///
/// `/proc/self/cgroup` has a line `0::PATH` for version 2 and `N:CONTROLLERS:PATH` for each
/// hierarchy of version 1. A container often sees the host's path although its own group is
/// mounted as the root; the walk up to the root finds that as well.
fn quota(root: &Path) -> Option<usize> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let quotas = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let (mounts, read): (&[&str], Reader) = if controllers.is_empty() {
            (&["sys/fs/cgroup", "sys/fs/cgroup/unified"], quota_v2)
        } else if controllers.split(',').any(|name| name == "cpu") {
            (&["sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct"], quota_v1)
        } else {
            return None;
        };
        mounts.iter().filter_map(|mount| walk_up(&root.join(mount), path, read)).min()
    });
    quotas.min()
}

type Reader = fn(&Path) -> Option<usize>;

/// Least quota of the group `path` under `mount` and of its ancestors up to the mount.
fn walk_up(mount: &Path, path: &str, read: Reader) -> Option<usize> {
    let path = PathBuf::from(path.trim_start_matches('/'));
    path.ancestors().filter_map(|group| read(&mount.join(group))).min()
}

/// `cpu.max`: "QUOTA PERIOD" in microseconds, QUOTA "max" for none.
fn quota_v2(group: &Path) -> Option<usize> {
    let text = fs::read_to_string(group.join("cpu.max")).ok()?;
    let (quota, period) = text.trim().split_once(' ')?;
    whole(quota, period)
}

/// `cpu.cfs_quota_us` (-1 for none) over `cpu.cfs_period_us`.
fn quota_v1(group: &Path) -> Option<usize> {
    let quota = fs::read_to_string(group.join("cpu.cfs_quota_us")).ok()?;
    let period = fs::read_to_string(group.join("cpu.cfs_period_us")).ok()?;
    whole(quota.trim(), period.trim())
}

fn whole(quota: &str, period: &str) -> Option<usize> {
    let (quota, period): (u64, u64) = (quota.parse().ok()?, period.parse().ok()?);
    (period > 0).then(|| quota.div_ceil(period).max(1) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of files, gone when dropped.
    struct Root(PathBuf);

    impl Root {
        fn new(name: &str, files: &[(&str, &str)]) -> Self {
            let root = std::env::temp_dir().join(format!("specdec-{}-{name}", std::process::id()));
            for (file, text) in files {
                let file = root.join(file);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, text).unwrap();
            }
            Self(root)
        }
    }

    impl Drop for Root {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn at_least_one_and_no_more_than_the_mask() {
        let threads = available_threads();
        assert!(threads >= 1 && threads <= affinity());
    }

    #[test]
    fn version_2_takes_the_least_of_group_and_ancestors_rounded_up() {
        let root = Root::new(
            "v2",
            &[
                ("proc/self/cgroup", "0::/slice/unit\n"),
                ("sys/fs/cgroup/slice/cpu.max", "250000 100000\n"),
                ("sys/fs/cgroup/slice/unit/cpu.max", "max 100000\n"),
            ],
        );
        assert_eq!(quota(&root.0), Some(3));
    }

    #[test]
    fn version_1_reads_the_cpu_hierarchy_mounted_as_the_containers_root() {
        let root = Root::new(
            "v1",
            &[
                ("proc/self/cgroup", "5:memory:/docker/1\n4:cpu,cpuacct:/docker/1\n0::/\n"),
                ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "150000\n"),
                ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
            ],
        );
        assert_eq!(quota(&root.0), Some(2));
    }

    #[test]
    fn no_limit_or_nonsense_is_no_quota() {
        let files = [
            ("proc/self/cgroup", "1:cpu:/\n0::/\nrubbish\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/cpu.max", "5 0\n"),
        ];
        assert_eq!(quota(&Root::new("none", &files).0), None);
        assert_eq!(quota(Path::new("/nowhere")), None);
    }

    #[test]
    fn a_tiny_quota_still_gives_one_thread() {
        let files = [("proc/self/cgroup", "0::/\n"), ("sys/fs/cgroup/cpu.max", "1000 100000\n")];
        assert_eq!(quota(&Root::new("tiny", &files).0), Some(1));
    }
}
