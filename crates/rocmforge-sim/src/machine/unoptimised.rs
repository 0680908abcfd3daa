//! Advice on stderr for a build without optimisation, which is how cargo builds the dependencies of a debug build.

use std::io::Write;
use std::sync::Once;

/// The advice: the profile of this workspace, which `cargo xtask tidy` compares. The factor is that of the benchmark `interpreter` of rocmforge-amdgcn.
const ADVICE: &str = "rocmforge-sim: built without optimisation, some 18 times slower than it need be. Add to your Cargo.toml: \
                      profile.dev.package.rocmforge-isa.opt-level = 2, profile.dev.package.rocmforge-amdgcn.opt-level = 2, \
                      profile.dev.package.rocmforge-amdgcn.codegen-units = 1 and \
                      profile.dev.package.rocmforge-sim.opt-level = 3";

/// Writes the advice to `out`, once in a process, if the interpreter is not `optimised`.
pub(crate) fn advise(optimised: bool, said: &Once, out: &mut dyn Write) {
    if !optimised {
        // A closed stderr is no reason to stop.
        said.call_once(|| drop(writeln!(out, "{ADVICE}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_is_given_once_and_only_where_it_is_true() {
        let (said, mut out) = (Once::new(), Vec::new());
        advise(true, &said, &mut out);
        assert!(out.is_empty());
        advise(false, &said, &mut out);
        advise(false, &said, &mut out);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count(), 1);
        assert!(
            text.contains("profile.dev.package.rocmforge-amdgcn.opt-level = 2"),
            "{text}"
        );
    }

    /// The profile of this workspace is the one that is advised.
    #[test]
    fn this_workspace_optimises_the_interpreter() {
        const { assert!(rocmforge_amdgcn::OPTIMISED) };
    }
}
