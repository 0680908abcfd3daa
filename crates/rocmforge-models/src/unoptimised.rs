//! Advice on stderr for a build without optimisation, which is how cargo builds the dependencies of a debug build.

use std::io::Write;
use std::sync::Once;

/// The advice: the profile of this workspace, which `cargo xtask tidy` compares. The factor is that of SmolLM2 on the CPU.
const ADVICE: &str = "rocmforge-models: built without optimisation, some 60 times slower on the CPU than it need be. Build with --release, or add \
                      to your Cargo.toml: profile.dev.package.rocmforge-ggml.opt-level = 3, \
                      profile.dev.package.rocmforge-models.opt-level = 2 and profile.dev.package.rocmforge-gguf.opt-level = 3";

/// Writes the advice to `out`, once in a process, if what computes is not `optimised`.
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
        let text = String::from_utf8(out).expect("UTF-8");
        assert_eq!(text.lines().count(), 1);
        assert!(
            text.contains("profile.dev.package.rocmforge-ggml.opt-level = 3"),
            "{text}"
        );
    }

    /// The profile of this workspace is the one that is advised.
    #[test]
    fn this_workspace_optimises_what_computes() {
        const { assert!(rocmforge_ggml::OPTIMISED) };
    }
}
