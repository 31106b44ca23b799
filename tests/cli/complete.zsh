# Prints what zsh offers for the line $2, a word a line, with the completion script $1. zsh completes in its line editor
# only, so that a second zsh, on a terminal of its own, is given the line and a tab.
zmodload zsh/zpty
zpty editor zsh -f -i
send() { zpty -w editor "$1" }
send 'PROMPT= ; unset zle_bracketed_paste; autoload -Uz compinit; compinit -u -D'
send "source ${(q)1}"
# Whatever is offered goes through compadd. Calls that only store matches (-O, -A, -D) are others' questions.
send 'compadd() {
  if [[ ${@[1,(i)(-|--)]} != *-(O|A|D)* ]]; then
    local -a offered
    builtin compadd -O offered "$@"
    (( $#offered )) && print -rl -- "offered "${^offered}
  fi
  builtin compadd "$@"
}'
send 'finished() { print -r -- "finished here"; exit }; zle -N finished; bindkey "^I" complete-word; bindkey "^X" finished'
send 'print -r -- "ready"" here"'
while zpty -r editor line && [[ $line != *"ready here"* ]]; do :; done
zpty -w -n editor "$2"$'\t\x18'
while zpty -r editor line; do
  [[ $line == *"finished here"* ]] && break
  [[ $line == *"offered "* ]] && print -r -- ${${line##*offered }%%[$'\r\n']*}
done
zpty -d editor
