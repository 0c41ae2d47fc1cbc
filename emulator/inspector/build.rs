//! Creates the tables of the page's files: as the emulator sends them, compressed with the feature `gzip`, and as text.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let package = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?);
    println!("cargo::rerun-if-changed=page");
    let mut names = Vec::new();
    for directory in ["page", "page/vendor"] {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            if path.is_file() {
                names.push(path);
            }
        }
    }
    names.sort();
    let (mut assets, mut sources) = (String::from("&[\n"), String::from("&[\n"));
    for (index, path) in names.iter().enumerate() {
        let content = fs::read(path)?;
        let mut hasher = DefaultHasher::new();
        content.hash(&mut hasher);
        let file = out.join(index.to_string());
        fs::write(&file, encode(content)?)?;
        let name = path
            .strip_prefix("page")?
            .to_string_lossy()
            .replace('\\', "/");
        writeln!(
            assets,
            "Asset {{ path: {name:?}, media_type: {:?}, etag: \"\\\"{:016x}\\\"\", content: include_bytes!({file:?}) }},",
            media_type(path),
            hasher.finish(),
        )?;
        writeln!(
            sources,
            "({name:?}, include_str!({:?})),",
            package.join(path)
        )?;
    }
    for (name, mut table) in [("assets.rs", assets), ("sources.rs", sources)] {
        table.push(']');
        fs::write(out.join(name), table)?;
    }
    Ok(())
}

#[cfg(feature = "gzip")]
fn encode(content: Vec<u8>) -> Result<Vec<u8>, Box<dyn Error>> {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&content)?;
    Ok(encoder.finish()?)
}

#[cfg(not(feature = "gzip"))]
#[expect(clippy::unnecessary_wraps, reason = "compression can fail")]
fn encode(content: Vec<u8>) -> Result<Vec<u8>, Box<dyn Error>> {
    Ok(content)
}

fn media_type(path: &Path) -> &'static str {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        _ => "text/plain; charset=utf-8",
    }
}
