//! Tuning: the numbers that only a card can decide, by a rule or by a measurement on that card.
//!
//! Each [`Parameter`] has a few variants. They share out the same sums in another order, or take another kernel of the same product: only the rounding of results differs,
//! and no variant rounds activations to fewer than the 8 bits that the rule has for few rows. [`Kernels::measure`](crate::Kernels::measure) times the variants, and [`Kernels::tuned`](crate::Kernels::tuned) takes what was chosen.
//!
//! ```
//! use rocmforge_kernels::{Parameter, Tuning};
//!
//! let mut tuning = Tuning::RULES;
//! tuning.set(Parameter::ProductThreads, 1024, [10.9, 11.6])?;
//! assert_eq!(tuning.value(Parameter::ProductThreads), 1024);
//! assert_eq!(
//!     tuning.explain(Parameter::ProductThreads).to_string(),
//!     "products of up to 8 rows: 1024 threads a multiprocessor, measured (10.9 us, 11.6 us with 512, the rule)"
//! );
//! assert!(tuning.set(Parameter::TilesFrom, 10, [1.0, 1.0]).is_err());
//! # Ok::<(), rocmforge_kernels::KernelError>(())
//! ```

mod measure;

use crate::{KernelError, KernelResult, Kernels};
use std::fmt;

pub use measure::{Measured, Timed};

/// A number that only a card can decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Parameter {
    /// Threads of the grid for each multiprocessor, of products with up to 8 rows of activations. Each block takes an even share of the rows of weights.
    ProductThreads,
    /// Blocks for each multiprocessor into which attention of few tokens divides the keys.
    AttentionBlocks,
    /// Tenths of a block for each multiprocessor that products of packed weights on the matrix unit have at least: with fewer blocks, more weights share the activations.
    TileBlocks,
    /// Rows of activations from which products with packed weights are on the matrix unit; fewer go eight at a time, in 8 bits.
    TilesFrom,
    /// Rows of activations up to which they read the packed weights there; of more the weights are written in 16 bits first.
    TilesTo,
}

/// What is known of a parameter before a measurement.
struct Row {
    name: &'static str,
    /// What it is a number of, before it and behind it.
    text: [&'static str; 2],
    rule: u32,
    variants: &'static [u32],
}

impl Parameter {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::ProductThreads,
        Self::AttentionBlocks,
        Self::TileBlocks,
        Self::TilesFrom,
        Self::TilesTo,
    ];

    const fn row(self) -> Row {
        match self {
            // The registers of the kernels leave room for 512 threads on NVIDIA's cards.
            Self::ProductThreads => Row {
                name: "product_threads",
                text: ["products of up to 8 rows", "threads a multiprocessor"],
                rule: 512,
                variants: &[256, 512, 768, 1024, 1536],
            },
            Self::AttentionBlocks => Row {
                name: "attention_blocks",
                text: ["attention of few tokens", "blocks a multiprocessor"],
                rule: 2,
                variants: &[1, 2, 3, 4, 6],
            },
            Self::TileBlocks => Row {
                name: "tile_blocks",
                text: [
                    "products of packed weights on the matrix unit",
                    "tenths of a block a multiprocessor at least",
                ],
                rule: 7,
                variants: &[4, 7, 12, 16, 32],
            },
            Self::TilesFrom => Row {
                name: "tiles_from",
                text: ["products on the matrix unit", "rows and more"],
                rule: 9,
                variants: &[9, 17, 25, 33],
            },
            // A tile has 32 rows, and each reads the weights; weights as f16 are written and read once for all rows.
            Self::TilesTo => Row {
                name: "tiles_to",
                text: ["products that read packed weights on the matrix unit", "rows at most"],
                rule: 128,
                variants: &[32, 64, 96, 128, 192, 256],
            },
        }
    }

    /// Its name in files: `product_threads`.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// The parameter of a name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|parameter| parameter.name() == name)
    }

    /// What it is without a measurement.
    pub const fn rule(self) -> u32 {
        self.row().rule
    }

    /// What it may be.
    pub const fn variants(self) -> &'static [u32] {
        self.row().variants
    }
}

/// A value, and the times in microseconds that chose it: its own and the rule's. Without them it is the rule's.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Choice {
    value: u32,
    micros: Option<[f64; 2]>,
}

/// A value of each parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tuning([Choice; Parameter::ALL.len()]);

impl Tuning {
    /// Counts changes of what parameters decide, or of how launchers follow them: times that were measured before are those of other launches.
    pub const REVISION: u32 = 1;

    /// What holds without a measurement.
    pub const RULES: Self = {
        let rule = Choice { value: 0, micros: None };
        let mut all = [rule; Parameter::ALL.len()];
        let mut at = 0;
        while at < all.len() {
            all[at].value = Parameter::ALL[at].rule();
            at += 1;
        }
        Self(all)
    };

    /// The value of a parameter.
    pub const fn value(&self, parameter: Parameter) -> u32 {
        self.0[parameter as usize].value
    }

    /// The times in microseconds that chose a value: its own and the rule's. `None` where the rule did.
    pub fn micros(&self, parameter: Parameter) -> Option<[f64; 2]> {
        self.0[parameter as usize].micros
    }

    /// Sets a value that was measured: its time in microseconds, and that of the rule's value.
    ///
    /// # Errors
    ///
    /// [`KernelError::NoVariant`]: [`Parameter::variants`] does not have the value, or a time is not positive.
    pub fn set(&mut self, parameter: Parameter, value: u32, micros: [f64; 2]) -> KernelResult<()> {
        let is_time = |time: f64| time.is_finite() && time > 0.0;
        if !parameter.variants().contains(&value) || !micros.into_iter().all(is_time) {
            return Err(KernelError::NoVariant {
                parameter: parameter.name(),
                value,
                micros,
                variants: parameter.variants(),
            });
        }
        self.0[parameter as usize] = Choice {
            value,
            micros: Some(micros),
        };
        Ok(())
    }

    /// What a parameter is, and which rule or measurement chose it.
    pub const fn explain(&self, parameter: Parameter) -> Explain {
        Explain {
            parameter,
            choice: self.0[parameter as usize],
        }
    }
}

impl Default for Tuning {
    fn default() -> Self {
        Self::RULES
    }
}

/// A value with what chose it, for people.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Explain {
    parameter: Parameter,
    choice: Choice,
}

impl fmt::Display for Explain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Row { text, rule, .. }, Choice { value, micros }) = (self.parameter.row(), self.choice);
        write!(f, "{}: {value} {}", text[0], text[1])?;
        match micros {
            None => f.write_str(", by rule"),
            Some([own, _]) if value == rule => write!(f, ", measured as by rule ({own:.1} us)"),
            Some([own, other]) => write!(f, ", measured ({own:.1} us, {other:.1} us with {rule}, the rule)"),
        }
    }
}

/// How a product of packed weights with rounded activations is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackedForm {
    /// By [`Kernels::matvec_q8`], eight rows of 8-bit activations at a time.
    Groups,
    /// By [`Kernels::packed16`], in f16 on the matrix unit.
    Tiles,
    /// By [`Kernels::matmul_halves`], which writes the weights as f16 first.
    Copies,
}

impl PackedForm {
    /// Rows of a group.
    pub const GROUP: usize = 8;
    /// The most groups. Each reads the packed weights once; the other way reads them, writes them as f16 and reads the f16. Of
    /// q8_0 four groups move 4 x 1.06 = 4.25 bytes a weight and the other way 5.06, of q4_0 2.25 and 4.56.
    pub const GROUPS: usize = 4;
}

impl Kernels {
    /// The form of a product of `m` rows with packed weights.
    pub fn packed_form(&self, m: usize) -> PackedForm {
        let [from, to] = [Parameter::TilesFrom, Parameter::TilesTo].map(|bound| self.tuning().value(bound) as usize);
        if (from..=to).contains(&m) && self.multiplies_packed16() {
            return PackedForm::Tiles;
        }
        match m <= PackedForm::GROUPS * PackedForm::GROUP {
            true => PackedForm::Groups,
            false => PackedForm::Copies,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_stand_in_their_order_and_their_rules_are_variants() {
        for (at, parameter) in Parameter::ALL.into_iter().enumerate() {
            assert_eq!(parameter as usize, at);
            assert_eq!(Parameter::of_name(parameter.name()), Some(parameter));
            assert!(parameter.variants().contains(&parameter.rule()), "{parameter:?}");
            assert_eq!(Tuning::RULES.value(parameter), parameter.rule());
            assert!(Tuning::RULES.explain(parameter).to_string().ends_with(", by rule"));
        }
        assert_eq!(Parameter::of_name("nothing"), None);
    }

    #[test]
    fn what_is_no_variant_or_no_time_is_refused_and_changes_nothing() {
        let mut tuning = Tuning::RULES;
        for (value, micros) in [(10, [1.0; 2]), (17, [0.0, 1.0]), (17, [1.0, f64::NAN])] {
            let error = tuning.set(Parameter::TilesFrom, value, micros).unwrap_err().to_string();
            assert!(
                error.contains("tiles_from") && error.contains("9, 17, 25, 33"),
                "{error}"
            );
        }
        assert_eq!(tuning, Tuning::RULES);
    }
}
