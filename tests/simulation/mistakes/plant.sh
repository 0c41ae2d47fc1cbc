# Sourced by what plants mistakes: a copy of the sources in `$copy`, and `plant` and `restore` for a patch there.
root=$PWD
copy=$root/target/mistakes
log=$root/target/mistakes.log
# A place of its own: cargo takes what was built of the copy for what was built of the sources, and the other way round.
mistakes_target=$root/target/mistakes.target

mkdir -p "$copy"
# Times stay, so that only what changed is built again.
git ls-files -z | xargs -0 cp --parents --update --preserve=timestamps --target-directory="$copy"

# The copy lies within the repository, of which git must not know.
apply() { (cd "$copy" && GIT_CEILING_DIRECTORIES=$root/target git apply --recount --unidiff-zero "$@"); }

plant() {
    apply "$1" 2>"$log" || { echo "$(basename "$1" .patch): DOES NOT APPLY: $(head -1 "$log")"; return 1; }
}

# What was built with the mistake is not taken for what is built without.
restore() {
    apply --reverse "$1"
    sed -n 's|^+++ b/||p' "$1" | (cd "$copy" && xargs touch)
}
