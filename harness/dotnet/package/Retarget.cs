using System;
using System.Linq;
using Mono.Cecil;

/// <summary>
/// Rewrites a library that was compiled against .NET Framework's assemblies into one that refers to `netstandard` alone, and fails
/// for a type that .NET Standard 2.0 does not have: Mono's `netstandard.dll` lists all of them. Arguments: that file, the
/// library, and the output file.
/// </summary>
internal static class Retarget
{
    private static int Main(string[] arguments)
    {
        using (var standard = ModuleDefinition.ReadModule(arguments[0]))
        using (var library = ModuleDefinition.ReadModule(arguments[1]))
        {
            var name = standard.Assembly.Name;
            var reference = new AssemblyNameReference(name.Name, name.Version) { PublicKeyToken = name.PublicKeyToken };
            var types = standard.ExportedTypes.Select(each => each.FullName).ToArray();
            var foreign = library.GetTypeReferences().Where(each => each.Scope is AssemblyNameReference).ToArray();
            var missing = foreign.Select(each => each.FullName).Where(each => !types.Contains(each)).ToArray();
            if (missing.Length > 0)
            {
                Console.Error.WriteLine($"not in .NET Standard 2.0: {string.Join(", ", missing)}");
                return 1;
            }
            library.AssemblyReferences.Clear();
            library.AssemblyReferences.Add(reference);
            foreach (var type in foreign.Where(each => each.DeclaringType == null))
            {
                type.Scope = reference;
            }
            library.Write(arguments[2]);
        }
        return 0;
    }
}
