//! Bytes that memory-bound kernels move, beside the fewest that their operation can: each input read once, each output written once.
//!
//! Two shares of each launch. Of memory: the fewest bytes over the segments of 128 bytes that the launch touched, each counted once, as where
//! caches keep what is asked for again. Of requests: the fewest bytes over the segments of all requests of waves, as if there were no cache.
//! Both are at least 95 %, except for requests with a reason here. `kernels/bytes.txt` has what they are on both cards, which none may fall below.

use crate::chosen::Chosen;
use crate::launches::Device;
use crate::{CountersError, all_kernels, counted_on, kernels};
use rocmforge_kernels::declared::Again::{self, Activations, No, Parts};
use rocmforge_kernels::declared::{Fresh, all};
use rocmforge_kernels::{Faults, GluKind, JointProduct, KernelResult, RowInput, WeightType};
use rocmforge_sim::Arch;
use rocmforge_sim::counters::{LaunchCounts, SEGMENT};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::error::Error;

/// The least share, in tenths of a percent.
const LEAST: u32 = 950;

/// Families whose kernels are bound by arithmetic or by latency, or are attention over a cache, whose bytes depend on what heads share. `sum_parts` has no
/// launches in the table yet.
const OTHER_FAMILIES: [&str; 35] = [
    "attention16_bf16",
    "attention16_bf16_extra",
    "attention16_f16",
    "attention16_f16_extra",
    "attention16_split",
    "flash_attention",
    "flash_attention_masked",
    "flash_attn_ext",
    "matmul",
    "matmul16",
    "matmul_views",
    "paged16",
    "paged16_bf16",
    "paged16_capped",
    "paged16_q8_0",
    "paged_attention",
    "paged_combine",
    "paged_split_bf16_d128",
    "paged_split_bf16_d256",
    "paged_split_bf16_d64",
    "paged_split_f16_d128",
    "paged_split_f16_d256",
    "paged_split_f16_d64",
    "paged_split_q8_0_d128",
    "paged_split_q8_0_d256",
    "paged_split_q8_0_d64",
    "paged_wide",
    "paged_wide16",
    "qk_matmul",
    "recurrent",
    "recurrent16",
    "route",
    "sampling",
    "sum_parts",
    "weighted_matmul",
];

/// A launch and the fewest bytes that it can move; `None` of one that prepares an operand of another.
struct Row {
    kernel: String,
    bytes: Option<usize>,
    again: Again,
}

/// Launches kernels and writes down what each of them should move.
struct Bytes<'a> {
    device: &'a Device<'a>,
    rows: RefCell<Vec<Row>>,
}

impl Bytes<'_> {
    /// The next launch is of this kernel.
    fn row(&self, kernel: impl Into<String>, bytes: usize, again: Again) {
        let (kernel, bytes) = (kernel.into(), Some(bytes));
        self.rows.borrow_mut().push(Row { kernel, bytes, again });
    }

    fn all(&self) -> KernelResult<()> {
        self.declared()?;
        self.packed()
    }

    /// Every declared kernel that memory bounds: the bytes of all its operands, unless it states others.
    fn declared(&self) -> KernelResult<()> {
        for kernel in all() {
            for dims in kernel.moved {
                let ran = kernel.run(self.device.kernels, self.device.stream, &mut Fresh, dims, false)?;
                for launch in &ran.launched {
                    let operands = launch
                        .operands
                        .iter()
                        .filter(|operand| operand.name != "the fault word");
                    let bytes = ran.moved.unwrap_or_else(|| operands.map(|operand| operand.bytes).sum());
                    self.rows.borrow_mut().push(Row {
                        kernel: launch.kernel.to_owned(),
                        bytes: (!launch.prepares).then_some(bytes),
                        again: kernel.again,
                    });
                }
            }
        }
        Ok(())
    }

    /// Packed weights: packing, rows of a table, and every product of a decoding step.
    fn packed(&self) -> KernelResult<()> {
        let (k, s) = (self.device.kernels, self.device.stream);
        let (n, depth) = (64, 2048);
        let word = self.device.fault_word()?;
        let faults = Faults { word: &word, tag: 0 };
        let ids = self
            .device
            .ids(&(0..n as u32).map(|row| row * 37 % 64).collect::<Vec<_>>())?;
        let rows = self.device.x(n * depth)?;
        let outs = [self.device.x(n)?, self.device.x(n)?, self.device.x(n)?];
        for ty in WeightType::ALL.into_iter().filter(|ty| ty.is_packable()) {
            let name = ty.to_string();
            let bytes = n * depth / ty.block_len() * ty.block_bytes();
            let mut matrices = Vec::new();
            for _ in 0..3 {
                self.row(format!("pack_{name}"), 2 * bytes, Parts);
                matrices.push(k.pack_weight(
                    s,
                    ty,
                    &self.device.bytes(bytes)?,
                    self.device.bytes(bytes)?,
                    [n, depth],
                )?);
            }
            self.row(format!("get_rows_packed_{name}"), bytes + 4 * n * depth + 4 * n, Parts);
            k.get_rows_packed(s, &matrices[0], &ids, &rows, faults)?;
            let q8_bytes = |m: usize| m * depth / 32 * 40;
            for m in [8, 4, 2] {
                self.row("quantize_q8", 4 * m * depth + q8_bytes(m), Parts);
                let x = k.quantize_q8(
                    s,
                    &rows.view(0..m * depth)?,
                    self.device.bytes(q8_bytes(m))?,
                    [m, depth],
                )?;
                self.row(
                    format!("matvec_q8_{name}_m{m}"),
                    bytes + q8_bytes(m) + 4 * m * n,
                    Activations,
                );
                k.matvec_q8(s, &matrices[0], &x, None, None, &self.device.x(m * n)?)?;
            }
            let row = rows.view(0..depth)?;
            let x = RowInput::from(&row);
            let begin = |kernel: &str, matrices: usize, outputs: usize| {
                let fewest = matrices * bytes + 4 * depth + 4 * outputs;
                self.row(format!("matvec_q8_{name}_{kernel}"), fewest, Activations);
            };
            begin("row", 1, n);
            k.matvec_q8_row(s, &matrices[0], x, None, None, &outs[0])?;
            begin("three", 3, 3 * n);
            let product = |index: usize| JointProduct {
                w: &matrices[index],
                bias: None,
                y: &outs[index],
            };
            k.matvec_q8_joint(s, x, &[product(0), product(1), product(2)])?;
            begin("gated", 2, n);
            k.matvec_q8_gated(s, x, [&matrices[0], &matrices[1]], GluKind::Swiglu, &outs[0])?;
        }
        Ok(())
    }
}

/// Least shares of the launches of a kernel, in tenths of a percent: of memory and of requests, on each card.
type Shares = [[u32; 2]; Arch::ALL.len()];

/// Memory and requests of a launch.
fn shares(bytes: usize, launch: &LaunchCounts) -> [u32; 2] {
    let c = &launch.counters;
    let asked = (c.loads.segments + c.stores.segments + c.atomics.segments) * SEGMENT;
    [c.distinct.bytes(), asked].map(|moved| (1000 * bytes as u64 / moved.max(1)) as u32)
}

/// The shares of each kernel, and why its requests are more.
fn measure(chosen: &Chosen) -> Result<BTreeMap<String, (Shares, Again)>, Box<dyn Error>> {
    let mut found = BTreeMap::new();
    for (card, arch) in Arch::ALL.into_iter().enumerate() {
        let mut rows = Vec::new();
        let launches = counted_on(arch, |device| {
            let kernels = chosen.of_kernels(device.kernels);
            let kernels = &kernels;
            let device = &Device { kernels, ..*device };
            let rows_of = RefCell::default();
            let bytes = Bytes { device, rows: rows_of };
            bytes.all()?;
            rows = bytes.rows.take();
            // The others were not enqueued.
            rows.retain(|row| chosen.has(&row.kernel) || row.bytes.is_none());
            Ok(())
        })?;
        let launched: Vec<&str> = launches.iter().map(|launch| launch.kernel.as_str()).collect();
        let stated: Vec<&str> = rows.iter().map(|row| row.kernel.as_str()).collect();
        assert_eq!(launched, stated, "each launch has a row");
        for (row, launch) in rows.iter().zip(&launches) {
            let Some(bytes) = row.bytes else { continue };
            let start = ([[u32::MAX; 2]; Arch::ALL.len()], row.again);
            let (of_kernel, again) = found.entry(row.kernel.clone()).or_insert(start);
            assert_eq!(*again, row.again, "{} has one reason", row.kernel);
            for (least, now) in of_kernel[card].iter_mut().zip(shares(bytes, launch)) {
                *least = now.min(*least);
            }
        }
    }
    Ok(found)
}

fn percent(tenths: u32) -> String {
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// The committed shares: a kernel and its four figures a line.
fn committed(text: &str) -> Result<BTreeMap<String, Shares>, CountersError> {
    let mut shares = BTreeMap::new();
    for (n, line) in text
        .lines()
        .enumerate()
        .filter(|(_, l)| !l.starts_with('#') && !l.is_empty())
    {
        let bad = |what: &str| CountersError::Bytes {
            line: n + 1,
            what: what.to_owned(),
        };
        let mut words = line.split_whitespace();
        let kernel = words.next().ok_or_else(|| bad("no kernel"))?;
        let tenths = words.map(|word| word.parse::<f64>().map(|percent| (percent * 10.0).round() as u32));
        let tenths: Result<Vec<u32>, _> = tenths.collect();
        let tenths = tenths.map_err(|_| bad("not a number"))?;
        let [a, b, c, d] = tenths.try_into().map_err(|_| bad("not four figures"))?;
        shares.insert(kernel.to_owned(), [[a, b], [c, d]]);
    }
    Ok(shares)
}

/// Prints the shares of every memory-bound kernel. With `ROCMFORGE_COUNTERS_BLESS` they become the bounds.
#[test]
fn memory_bound_kernels_move_few_bytes_beyond_the_fewest() -> Result<(), Box<dyn Error>> {
    let chosen = Chosen::read()?;
    let mut found = measure(&chosen)?;
    chosen.retain(&mut found);
    let [a, b] = Arch::ALL.map(|arch| arch.name());
    println!("percent of the fewest bytes: of memory and of requests, on {a} and {b}; why requests ask for more");
    for (kernel, (shares, again)) in &found {
        let figures = shares.as_flattened().iter().map(|&tenths| percent(tenths));
        let figures: Vec<String> = figures.collect();
        let reason = if *again == No {
            String::new()
        } else {
            format!("{again:?}")
        };
        let columns = figures.iter().map(|figure| format!(" {figure:>6}")).collect::<String>();
        println!("{kernel:<28}{columns} {reason}");
    }
    let mut short = Vec::new();
    for (kernel, (shares, again)) in &found {
        for (card, [memory, requests]) in Arch::ALL.iter().zip(shares) {
            if *memory < LEAST || (*again == No && *requests < LEAST) {
                short.push(format!("{kernel} on {card} is below {}", percent(LEAST)));
            }
        }
        if *again != No && shares.iter().all(|[_, requests]| *requests >= LEAST) {
            short.push(format!("{kernel} needs no reason any more"));
        }
    }
    let path = kernels().join("bytes.txt");
    let committed = committed(&std::fs::read_to_string(&path).map_err(CountersError::Io)?)?;
    if std::env::var_os("ROCMFORGE_COUNTERS_BLESS").is_some() {
        let mut text = format!("# kernel, percent of the fewest bytes on {a} and {b}: of memory, of requests each\n");
        let new = found.iter().map(|(kernel, (shares, _))| (kernel.clone(), *shares));
        for (kernel, shares) in chosen.written(committed, new.collect()) {
            let figures: Vec<String> = shares.as_flattened().iter().map(|&tenths| percent(tenths)).collect();
            text += &format!("{kernel} {}\n", figures.join(" "));
        }
        std::fs::write(&path, text).map_err(CountersError::Io)?;
        println!("wrote {}", path.display());
    } else {
        for (kernel, (now, _)) in &found {
            match committed.get(kernel) {
                None => short.push(format!("{kernel} has no line in kernels/bytes.txt")),
                Some(bound) => {
                    let pairs = now.as_flattened().iter().zip(bound.as_flattened());
                    let less = pairs.filter(|(now, bound)| now < bound);
                    short.extend(
                        less.map(|(now, bound)| {
                            format!("{kernel}: {} %, at least {} %", percent(*now), percent(*bound))
                        }),
                    );
                }
            }
        }
    }
    match short.is_empty() {
        true => Ok(()),
        false => Err(CountersError::Passed(short).into()),
    }
}

#[test]
fn every_kernel_is_here_or_among_the_others() -> Result<(), Box<dyn Error>> {
    let committed = committed(&std::fs::read_to_string(kernels().join("bytes.txt"))?)?;
    // Products by tiles are bound by arithmetic; rows as f16 have no launches in the table yet.
    let named = ["matmul", "matmul_packed", "half_rows", "half_rows_packed"];
    let of_type = |ty| {
        let tiles = [1, 2].map(|tiles| format!("packed16_{ty}_t{tiles}"));
        named.map(|name| format!("{name}_{ty}")).into_iter().chain(tiles)
    };
    // Sorting is bound by latency.
    let sorting = ["expert_tiles".to_owned()];
    let others: Vec<String> = WeightType::ALL.iter().flat_map(of_type).chain(sorting).collect();
    let mut here = 0;
    for (family, kernel) in all_kernels()? {
        let other = OTHER_FAMILIES.contains(&family.as_str()) || others.contains(&kernel);
        assert_ne!(other, committed.contains_key(&kernel), "{kernel} of {family}");
        here += usize::from(!other);
    }
    assert_eq!(
        here,
        committed.len(),
        "a kernel of kernels/bytes.txt is not there any more"
    );
    Ok(())
}

#[test]
fn shares_are_read() {
    let read = committed("# comment\nadd 99.9 95.0 100.0 1.2\n").expect("sound");
    assert_eq!(read["add"], [[999, 950], [1000, 12]]);
    assert!(committed("add 1 2 3\n").is_err() && committed("add 1 2 3 x\n").is_err());
}
