#!/usr/bin/env python3
"""Fetches .NET 9, Azure.Messaging.ServiceBus 7.20.1, NUnit 3.13 and the C# compiler of Roslyn 4.1, for Linux for x86-64, and compiles
with them. They are parts of two packages of npm, 130 MB to download.

    toolchain.py <directory> <output> <source>...

keeps the packages in the directory, and compiles a program that uses the SDK: `cases` in the output directory, from these sources.
It starts where `DOTNET_ROOT` is the directory's `dotnet`. Requires `npm` and `mcs`, the compiler of Mono.
"""

import fcntl
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
FACADES = Path("/usr/lib/mono/4.5/Facades")
FRAMEWORK = "Microsoft.NETCore.App"
PACKAGES = {"azure": "@azure/mcp-linux-x64@0.5.13", "compiler": "@autorest/csharp@3.0.0-beta.20251203.1"}
# The SDK with what it depends on; .NET 9 has the rest.
SDK = (
    *("Azure.Messaging.ServiceBus", "Azure.Core", "Azure.Core.Amqp", "Azure.Identity", "Microsoft.Azure.Amqp"),
    *("Microsoft.Bcl.AsyncInterfaces", "Microsoft.Identity.Client", "Microsoft.Identity.Client.Extensions.Msal"),
    *("Microsoft.IdentityModel.Abstractions", "System.ClientModel", "System.Memory.Data"),
)
# Versions of assemblies differ from those that they were compiled with; at run time the newest is used.
OPTIONS = ["-warnaserror", "-nowarn:CS1701,CS1702"]


class Toolchain:
    """What is installed in a directory."""

    def __init__(self, directory: Path) -> None:
        if (sys.platform, platform.machine()) != ("linux", "x86_64"):
            sys.exit("the packages with .NET and its SDK are for Linux for x86-64")
        if shutil.which("mcs") is None or not FACADES.is_dir():
            sys.exit(f"`mcs`, the C# compiler of Mono, or its {FACADES} is missing; Debian's `mono-devel` contains both")
        self.directory, self.root = directory, directory / "dotnet"
        self.azure, self.compiler = directory / "azure/dist", directory / "compiler"
        self.nunit = self.compiler / "nunit.framework.dll"
        self.sdk = [self.azure / f"{name}.dll" for name in SDK]
        directory.mkdir(parents=True, exist_ok=True)
        with (directory / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for name, package in PACKAGES.items():
                self.fetch(name, package)
            self.version = self.install_runtime()
            self.install_compiler()
        framework = self.root / "shared" / FRAMEWORK / self.version
        self.references = [f"-r:{file}" for file in framework.glob("*.dll") if file.name != "mscorlib.dll"]

    def fetch(self, name: str, package: str) -> None:
        if (self.directory / name).is_dir():
            return
        part = self.directory / f"{name}.part"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        subprocess.run(["npm", "pack", "--silent", "--pack-destination", part, package], check=True, stdout=subprocess.DEVNULL)
        with tarfile.open(next(part.glob("*.tgz"))) as archive:
            archive.extractall(part)
        (part / "package").rename(self.directory / name)
        shutil.rmtree(part)

    def install_runtime(self) -> str:
        """Arranges the runtime, which the package has beside its program, as .NET installs it; returns its version."""
        manifest = json.loads((self.azure / "azmcp.deps.json").read_text())
        target = manifest["runtimeTarget"]["name"]
        pack = next(name for name in manifest["targets"][target] if name.startswith(f"runtimepack.{FRAMEWORK}."))
        files = manifest["targets"][target][pack]
        version = pack.split("/")[1]
        host = self.root / "host/fxr" / version
        if (host / "libhostfxr.so").exists():
            return version
        shutil.rmtree(self.root, ignore_errors=True)
        framework = self.root / "shared" / FRAMEWORK / version
        framework.mkdir(parents=True)
        for name in [*files["runtime"], *files["native"]]:
            (framework / name).symlink_to(self.azure / name)
        kept = {"targets": {target: {pack: files}}, "libraries": {pack: manifest["libraries"][pack]}}
        (framework / f"{FRAMEWORK}.deps.json").write_text(json.dumps({"runtimeTarget": {"name": target}, **kept}))
        host.mkdir(parents=True)
        (host / "libhostfxr.so").symlink_to(self.azure / "libhostfxr.so")
        return version

    def install_compiler(self) -> None:
        # Mono's compiler cannot read .NET 9's own assemblies; those of Mono have the same types.
        source, program = HERE / "tests/core/Compile.cs", self.compiler / "compile.dll"
        if program.exists() and program.stat().st_mtime >= source.stat().st_mtime:
            return
        roslyn = [self.compiler / f"Microsoft.CodeAnalysis{name}.dll" for name in ("", ".CSharp")]
        references = [*FACADES.glob("*.dll"), self.azure / "System.Collections.Immutable.dll", *roslyn]
        options = ["-nowarn:1701", "-target:exe", f"-out:{program}", *(f"-r:{file}" for file in references)]
        self.write_host(self.compiler, "compile", "compile.dll")
        subprocess.run(["mcs", *options, source], check=True)

    def environment(self) -> dict[str, str]:
        return {**os.environ, "DOTNET_ROOT": str(self.root), "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1"}

    def write_host(self, directory: Path, name: str, assembly: str) -> Path:
        """A program that runs an assembly beside it: the package's, with that name in place of its own assembly's."""
        config = {"runtimeOptions": {"framework": {"name": FRAMEWORK, "version": self.version}}}
        (directory / f"{name}.runtimeconfig.json").write_text(json.dumps(config))
        own, other = (text.encode().ljust(64, b"\0") for text in ("azmcp.dll", assembly))
        program = directory / name
        program.write_bytes((self.azure / "azmcp").read_bytes().replace(own, other))
        program.chmod(0o755)
        return program

    def compile(self, kind: str, version: str, output: Path, *arguments: str | Path) -> None:
        options = [*OPTIONS, f"-target:{kind}", f"-langversion:{version}", f"-out:{output}"]
        command = [self.compiler / "compile", *options, *self.references, *arguments]
        ended = subprocess.run(command, env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if ended.returncode != 0:
            raise AssertionError(ended.stdout)


def main() -> None:
    directory, output, *sources = map(Path, sys.argv[1:])
    toolchain = Toolchain(directory)
    output.mkdir(parents=True, exist_ok=True)
    for file in toolchain.sdk:
        shutil.copy(file, output)
    toolchain.compile("exe", "10", output / "cases.dll", *(f"-r:{file}" for file in toolchain.sdk), *sources)
    toolchain.write_host(output, "cases", "cases.dll")


if __name__ == "__main__":
    main()
