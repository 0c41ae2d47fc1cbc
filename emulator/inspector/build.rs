//! Compresses the files of the page, and makes the table of them.

use std::fmt::Write as _;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
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
    let mut table = String::from("&[\n");
    for (index, path) in names.iter().enumerate() {
        let content = fs::read(path)?;
        let mut hasher = DefaultHasher::new();
        content.hash(&mut hasher);
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&content)?;
        let file = out.join(format!("{index}.gz"));
        fs::write(&file, encoder.finish()?)?;
        let name = path
            .strip_prefix("page")?
            .to_string_lossy()
            .replace('\\', "/");
        writeln!(
            table,
            "Asset {{ path: {name:?}, media_type: {:?}, etag: \"\\\"{:016x}\\\"\", gzip: include_bytes!({file:?}) }},",
            media_type(path),
            hasher.finish(),
        )?;
    }
    table.push(']');
    fs::write(out.join("assets.rs"), table)?;
    Ok(())
}

fn media_type(path: &Path) -> &'static str {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        _ => "text/plain; charset=utf-8",
    }
}
