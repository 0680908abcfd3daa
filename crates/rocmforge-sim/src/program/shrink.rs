//! Cuts a failing program down.

/// Cuts a program, or any list of things to do, down: takes away halves, quarters, ... and at last single operations as long as `fails` still holds for
/// what is left. `fails` must hold for all of `ops`, and give the same answer each time it is asked.
pub fn shrink<T: Clone>(ops: &[T], fails: impl Fn(&[T]) -> bool) -> Vec<T> {
    let mut left = ops.to_vec();
    let mut chunk = left.len().div_ceil(2).max(1);
    loop {
        let mut cut = false;
        let mut at = 0;
        while at < left.len() {
            let end = (at + chunk).min(left.len());
            let candidate: Vec<T> = left[..at].iter().chain(&left[end..]).cloned().collect();
            if fails(&candidate) {
                (left, cut) = (candidate, true);
            } else {
                at = end;
            }
        }
        match (cut, chunk) {
            (true, _) => {}
            (false, 1) => return left,
            (false, _) => chunk = chunk.div_ceil(2),
        }
    }
}
