//! Writes the description of the control API as the program contains it: without indentation, and packed for the executable,
//! which would carry ten times as much of it otherwise.

use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=openapi.json");
    let description = std::fs::read_to_string("openapi.json")?;
    let lines = description
        .lines()
        .flat_map(|line| [line.trim_start(), "\n"]);
    let out = std::env::var("OUT_DIR")?;
    write(Path::new(&out), &lines.collect::<String>())
}

#[cfg(not(feature = "cli"))]
fn write(out: &Path, description: &str) -> Result<(), Box<dyn Error>> {
    Ok(std::fs::write(out.join("openapi.json"), description)?)
}

/// Packs it by gzip.
#[cfg(feature = "cli")]
fn write(out: &Path, description: &str) -> Result<(), Box<dyn Error>> {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(description.as_bytes())?;
    Ok(std::fs::write(
        out.join("openapi.json.gz"),
        encoder.finish()?,
    )?)
}
