//! Every order of dropping roots, clones and views: the same campaign for every provider that can count its frees.

use rocmforge_runtime::*;

/// All orders of `n` things.
pub(crate) fn permutations(n: usize) -> Vec<Vec<usize>> {
    if n == 0 {
        return vec![vec![]];
    }
    let mut all = Vec::new();
    for shorter in permutations(n - 1) {
        for at in 0..n {
            let mut longer = shorter.clone();
            longer.insert(at, n - 1);
            all.push(longer);
        }
    }
    all
}

/// Each further object is a clone or a view of some earlier one: every family of up to `n` objects.
fn families(n: usize) -> Vec<Vec<(usize, bool)>> {
    let mut all = vec![vec![]];
    for index in 1..n {
        all = all
            .into_iter()
            .flat_map(|family| {
                (0..index).flat_map(move |parent| {
                    let family = family.clone();
                    [false, true].map(|view| {
                        let mut longer = family.clone();
                        longer.push((parent, view));
                        longer
                    })
                })
            })
            .collect();
    }
    all
}

/// Drops every family of up to five objects in every order. `frees` says how often the provider freed device memory.
///
/// # Panics
///
/// If memory is freed while an object of it lives, or not exactly once in the end.
pub(crate) fn each_frees_once(backend: &HipBackend, frees: impl Fn() -> u64) {
    let stream = backend.stream();
    let epoch = backend.card().ledger().epoch();
    let mut orders = 0u64;
    for n in 1..=5 {
        for family in families(n) {
            for order in permutations(n) {
                // Half of the time the work is still queued when the first object goes.
                let queued = orders.is_multiple_of(2);
                let before = frees();
                let root = HipBuffer::<u8>::zeroed(stream, Elems(64), "root").unwrap();
                let mut objects = vec![Some(root)];
                for &(parent, view) in &family {
                    let parent = objects[parent].as_ref().unwrap();
                    let child = if view {
                        parent.view(0..parent.len() - 1).unwrap()
                    } else {
                        parent.clone()
                    };
                    objects.push(Some(child));
                }
                if !queued {
                    stream.synchronize().unwrap();
                }
                let (last, others) = order.split_last().unwrap();
                for &index in others {
                    objects[index] = None;
                    assert_eq!(
                        frees(),
                        before,
                        "freed while an object of it lives: {family:?} {order:?}"
                    );
                }
                objects[*last] = None;
                stream.synchronize().unwrap();
                assert_eq!(frees(), before + 1, "{family:?} {order:?}");
                orders += 1;
            }
        }
    }
    // 1 + 2*1*2! + 4*2*3! + 8*6*4! + 16*24*5! of them.
    assert_eq!(orders, 1 + 4 + 48 + 1152 + 46080);
    assert!(epoch.leaks().is_clean(), "{}", epoch.leaks());
}
