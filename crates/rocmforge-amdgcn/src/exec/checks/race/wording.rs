//! Wording of races: what each side did.

use super::slot::{Info, Slot, flags};
use crate::fault::Access;

/// How a side touched memory.
pub(super) fn access_of(slot: Slot, info: Info) -> Access {
    match slot {
        Slot::Store => Access::Store,
        Slot::Atomic if info.flags() & flags::STORE != 0 => Access::Store,
        Slot::Atomic => Access::Atomic,
        _ if info.flags() == flags::SCALAR => Access::Scalar,
        _ => Access::Load,
    }
}

/// The sentence of a finding.
pub(super) fn describe(later: Access, earlier: Access, inside: bool, cure: &str) -> String {
    let verb = |access| match access {
        Access::Load | Access::Scalar => "read",
        Access::Store => "write",
        Access::Atomic => "atomic",
        Access::None => "access",
    };
    let by = if inside {
        "two waves of a workgroup"
    } else {
        "two workgroups"
    };
    format!("{} and {} by {by}{cure}", verb(later), verb(earlier))
}
