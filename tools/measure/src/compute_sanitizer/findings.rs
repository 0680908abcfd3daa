//! Findings of compute-sanitizer, as data.
//!
//! Its lines begin with `========= `. A finding is a line without indentation, and more about it indented below; then a backtrace
//! of the host.

/// A place in a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) file: String,
    pub(super) line: u32,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    /// Its first line, up to its figures.
    pub(super) what: String,
    /// Where it happened: a race has two places.
    pub(super) places: Vec<Place>,
    /// The kernels it happened in.
    pub(super) kernels: Vec<String>,
    /// A call that answered an error, which is no word about a kernel.
    pub(super) is_call: bool,
}

/// What its first line says when it is no finding.
const OTHERS: [&str; 4] = [
    "COMPUTE-SANITIZER",
    "Target application returned an error",
    "Error: process didn't terminate successfully",
    "Warning:",
];

/// Every finding in an output, in its order.
pub(super) fn findings(output: &str) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    // Whether indented lines are about the latest finding.
    let mut open = false;
    for line in output.lines().filter_map(|line| line.strip_prefix("=========")) {
        let line = line.strip_prefix(' ').unwrap_or(line);
        if line.trim().is_empty() || line.contains("acktrace") {
            open = false;
        } else if line.starts_with(' ') {
            if let (true, Some(finding)) = (open, found.last_mut()) {
                finding.places.extend(place(line));
                finding.kernels.extend(kernel(line));
            }
        } else if OTHERS.iter().any(|other| line.starts_with(other)) || line.contains("SUMMARY:") {
            open = false;
        } else {
            let is_call = line.starts_with("Program hit ");
            found.push(Finding {
                what: what(line),
                places: place(line).into_iter().collect(),
                kernels: kernel(line).into_iter().collect(),
                is_call,
            });
            open = true;
        }
    }
    found
}

/// `Invalid __global__ write of size 4 bytes` is an invalid write, whatever its size.
fn what(line: &str) -> String {
    let line = line.strip_prefix("Error: ").unwrap_or(line);
    let ends = [" of size ", " between ", " at ", " due to "];
    let end = ends.iter().filter_map(|end| line.find(end)).min();
    line[..end.unwrap_or(line.len())].trim_end_matches('.').to_owned()
}

/// `at faulty+0x40 in memcheck/x.hip:12`: the last place of a line.
fn place(line: &str) -> Option<Place> {
    let (_, place) = line.rsplit_once(" in ")?;
    let (file, line) = place.split_whitespace().next()?.rsplit_once(':')?;
    Some(Place {
        file: file.to_owned(),
        line: line.parse().ok()?,
    })
}

/// `at memcheck_x_faulty+0x40 in ...`: the kernel of a line.
fn kernel(line: &str) -> Option<String> {
    let (before, _) = line.split_once("+0x")?;
    let name = before.rsplit(' ').next()?;
    Some(name.split('(').next().unwrap_or(name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(file: &str, line: u32) -> Place {
        Place {
            file: file.to_owned(),
            line,
        }
    }

    /// As version 2025.3 writes it.
    #[test]
    fn a_finding_has_a_kind_a_kernel_and_its_place() {
        let output = "\
========= COMPUTE-SANITIZER
test faulty_kernels ...
FAULTY memcheck/write_past_end begins
========= Invalid __global__ write of size 4 bytes
=========     at memcheck_write_past_end_faulty+0x90 in kernels/memcheck/write_past_end.hip:11
=========     by thread (63,0,0) in block (0,0,0)
=========     Access to 0x7efc0ca000fc is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7efc0ca00000 of size 252 bytes
=========
FAULTY memcheck/write_past_end ends: HIP says nothing
========= Trace/breakpoint trap
=========     at synccheck_gives_up_faulty+0xa0 in kernels/synccheck/gives_up.hip:12
=========     by thread (31,0,0) in block (0,0,0)
=========
========= Program hit CUDA_ERROR_LAUNCH_FAILED (error 719) due to \"unspecified launch failure\" on CUDA API call to cuStreamQuery.
=========
========= Target application returned an error
========= ERROR SUMMARY: 3 errors
";
        let found = findings(output);
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!(found[0].what, "Invalid __global__ write");
        assert_eq!(found[0].places, [at("kernels/memcheck/write_past_end.hip", 11)]);
        assert_eq!(found[0].kernels, ["memcheck_write_past_end_faulty"]);
        assert_eq!(found[1].what, "Trace/breakpoint trap");
        assert!(found[2].is_call && !found[0].is_call);
    }

    #[test]
    fn a_backtrace_of_the_host_is_no_place() {
        let output = "\
========= Uninitialized __global__ memory read of size 4 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: main in main.rs:99 [0x123]
";
        let found = findings(output);
        assert_eq!((found.len(), found[0].places.len()), (1, 0));
    }

    #[test]
    fn a_race_has_two_places() {
        let output = "\
========= Error: Race reported between Write access at racecheck_argmax_index_faulty+0x120 in racecheck/argmax_index.hip:15
=========     and Read access at racecheck_argmax_index_faulty+0x190 in racecheck/argmax_index.hip:17 [4 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
";
        let found = findings(output);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].what, "Race reported");
        let file = "racecheck/argmax_index.hip";
        assert_eq!(found[0].places, [at(file, 15), at(file, 17)]);
    }

    #[test]
    fn a_clean_run_has_none() {
        assert_eq!(findings("test a ... ok\n========= ERROR SUMMARY: 0 errors\n"), []);
    }
}
