//! Disassembles hexadecimal words, one instruction a line of standard input: `e0510002 00020d04` or `bf800000`.
#![allow(clippy::print_stdout)] // printing is what this example is for

use rocmforge_isa::decode;
use std::io::BufRead as _;

fn main() {
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let words: Result<Vec<u32>, _> = line
            .split_whitespace()
            .map(|word| u32::from_str_radix(word, 16))
            .collect();
        match words.map(|words| decode(&words, 0)) {
            Ok(Ok(inst)) => println!("{}\t{inst}", inst.size / 4),
            Ok(Err(error)) => println!("!\t{error}"),
            Err(error) => println!("!\tnot hexadecimal words: {error}"),
        }
    }
}
