//! Calls that a wave is in: they lead from the kernel to the function that the wave executes.

/// One call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Call {
    /// Address of its instruction as `llvm-objdump` prints it, like all addresses here.
    pub(crate) pc: u64,
    /// Start of the function that is called.
    pub(crate) target: u64,
    /// Where that returns to.
    pub(crate) back: u64,
}

/// Calls that are kept: the innermost of a deep recursion.
const MOST: usize = 64;

/// Calls, the innermost last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Calls(Vec<Call>);

impl Calls {
    pub(crate) const NONE: Self = Self(Vec::new());

    /// A function is called.
    pub(crate) fn enter(&mut self, call: Call) {
        if self.0.len() == MOST {
            self.0.remove(0);
        }
        self.0.push(call);
    }

    /// Execution jumps to an address: the calls end that return there, and those inside them.
    pub(crate) fn leave(&mut self, to: u64) {
        if let Some(returned) = self.0.iter().rposition(|call| call.back == to) {
            self.0.truncate(returned);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// The calls, the innermost first.
    pub(crate) fn innermost_first(&self) -> impl Iterator<Item = &Call> {
        self.0.iter().rev()
    }
}

#[cfg(test)]
mod tests {
    use super::{Call, Calls, MOST};

    fn call(pc: u64) -> Call {
        Call {
            pc,
            target: 0x1000,
            back: pc + 4,
        }
    }

    fn pcs(calls: &Calls) -> Vec<u64> {
        calls.innermost_first().map(|call| call.pc).collect()
    }

    #[test]
    fn a_return_ends_its_call_and_those_inside() {
        let mut calls = Calls::NONE;
        for pc in [0x10, 0x20, 0x30] {
            calls.enter(call(pc));
        }
        assert_eq!(pcs(&calls), [0x30, 0x20, 0x10]);
        calls.leave(0x999);
        assert_eq!(pcs(&calls), [0x30, 0x20, 0x10], "a jump to somewhere else");
        calls.leave(0x24);
        assert_eq!(pcs(&calls), [0x10]);
        calls.leave(0x14);
        assert_eq!(calls, Calls::NONE);
    }

    #[test]
    fn a_deep_recursion_keeps_its_innermost_calls() {
        let mut calls = Calls::NONE;
        calls.enter(call(0x10));
        for _ in 0..100 {
            calls.enter(call(0x20));
        }
        assert_eq!(pcs(&calls), [0x20; MOST]);
        for left in (0..MOST).rev() {
            calls.leave(0x24);
            assert_eq!(pcs(&calls).len(), left);
        }
        // Those that are not known any more.
        calls.leave(0x24);
        calls.leave(0x14);
        assert_eq!(calls, Calls::NONE);
    }
}
