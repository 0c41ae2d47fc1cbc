# Sourced by the scripts that plant mistakes: a copy of the sources in `$copy`, and `plant` and `restore` for a patch there.
root=$PWD
copy=$root/target/mistakes
log=$root/target/mistakes.log
# A separate target directory, because cargo confuses builds of the copy and of the sources.
mistakes_target=$root/target/mistakes.target

mkdir -p "$copy"
# Keeps file times, so that only changed files are built again.
git ls-files -z | xargs -0 cp --parents --update --preserve=timestamps --target-directory="$copy"

# The copy is within the repository; git must ignore that.
apply() { (cd "$copy" && GIT_CEILING_DIRECTORIES=$root/target git apply --recount --unidiff-zero "$@"); }

plant() {
    apply "$1" 2>"$log" || { echo "$(basename "$1" .patch): DOES NOT APPLY: $(head -1 "$log")"; return 1; }
}

# Prevents cargo from reusing the build with the mistake for the sources without it.
restore() {
    apply --reverse "$1"
    sed -n 's|^+++ b/||p' "$1" | (cd "$copy" && xargs touch)
}
