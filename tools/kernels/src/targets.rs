//! Targets: what each pack is for.

/// What a pack is for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    /// As clang's `--offload-arch` has it.
    pub(crate) arch: &'static str,
    /// The target whose pack has the families that this one lacks. A target without one is a base target.
    pub(crate) fallback: Option<&'static str>,
    /// A target with similar code, a base target of its own: a pack is compressed as what differs from that one's of the same family, or the fallback's where it has none. All of them whole
    /// would be more than the 10 MiB that crates.io takes.
    pub(crate) near: Option<&'static str>,
}

/// The targets whose packs are committed. PTX runs on later cards too, that of `sm_90a` on compute capability 9.0 only.
pub(crate) const TARGETS: [Target; 13] = [
    like("gfx1030", "gfx1100"),
    base("gfx1100"),
    like("gfx1101", "gfx1100"),
    like("gfx1102", "gfx1100"),
    like("gfx1150", "gfx1151"),
    like("gfx1151", "gfx1101"),
    like("gfx1200", "gfx1201"),
    like("gfx1201", "gfx1100"),
    like("gfx90a", "gfx1100"),
    like("gfx942", "gfx90a"),
    base("sm_75"),
    // mma.sync, ldmatrix of four matrices, cp.async.
    over("sm_80", "sm_75"),
    // wgmma and TMA, and launches that begin early.
    Target {
        near: Some("sm_75"),
        ..over("sm_90a", "sm_80")
    },
];

const fn base(arch: &'static str) -> Target {
    Target {
        arch,
        fallback: None,
        near: None,
    }
}

/// A base target that is compressed against another.
const fn like(arch: &'static str, near: &'static str) -> Target {
    Target {
        near: Some(near),
        ..base(arch)
    }
}

/// A target whose pack holds only the families that [`FAMILIES`](crate::families::FAMILIES) gives it.
const fn over(arch: &'static str, fallback: &'static str) -> Target {
    Target {
        fallback: Some(fallback),
        ..base(arch)
    }
}

/// The target whose pack has what the pack of `arch` lacks. A target that is not committed has all families itself.
pub(crate) fn fallback(arch: &str) -> Option<&'static str> {
    TARGETS.iter().find(|target| target.arch == arch)?.fallback
}

/// The target whose pack that of `arch` is compressed against.
pub(crate) fn near(arch: &str) -> Option<&'static str> {
    TARGETS.iter().find(|target| target.arch == arch)?.near
}

/// Whether the compiler makes PTX for it; AMD's code otherwise.
pub(crate) fn is_ptx(arch: &str) -> bool {
    arch.starts_with("sm_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fallback_ends_at_a_base_target() {
        for target in TARGETS {
            let chain = std::iter::successors(Some(target.arch), |arch| fallback(arch));
            let chain: Vec<&str> = chain.take(TARGETS.len()).collect();
            assert!(chain.len() < TARGETS.len(), "{} falls back to itself", target.arch);
            assert!(
                chain.iter().all(|arch| TARGETS.iter().any(|known| known.arch == *arch)),
                "{chain:?}"
            );
        }
    }
}
