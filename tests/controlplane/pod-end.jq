# When and how does this pod end? Yields {after: seconds, succeeds: boolean}, or nothing for a pod
# that runs for ever. There is no container: what a command would do is read off its words.

def seconds:
  capture("^(?<number>[0-9]*\\.?[0-9]+)(?<unit>[smhd]?)$")
  | (.number | tonumber) * {"": 1, s: 1, m: 60, h: 3600, d: 86400}[.unit];

# Of a list of words: their sum, or nothing if one is no number ("infinity").
def total: [.[] | seconds] as $known | select(($known | length) == length) | $known | add // 0;

# Of a shell's script. One that has a loop, or neither sleeps nor exits, is taken for a server.
def script_end:
  . as $text
  | [scan("(?:^|[;&|(\\s])sleep\\s+([^\\s;&|)]+)") | .[0]] as $sleeps
  | [scan("(?:^|[;&|{\\s])exit\\s+([0-9]+)") | .[0]] as $exits
  | (test("^\\s*true\\s*$")) as $true
  | (test("(?:^|[;&\\s])false\\s*;?\\s*$")) as $false
  | select(test("(?:^|[;&|\\s])(?:while|until|for)\\s") | not)
  | select(($sleeps | length) > 0 or ($exits | length) > 0 or $true or $false)
  | {after: ($sleeps | total), succeeds: (($exits[-1] // "0") == "0" and ($false | not))};

def container_end:
  ((.command // []) + (.args // [])) as $words
  | ($words[0] // "" | split("/") | last // "") as $program
  | if $program == "sleep" then {after: ($words[1:] | total), succeeds: true}
    elif $program == "true" then {after: 0, succeeds: true}
    elif $program == "false" then {after: 0, succeeds: false}
    elif ($program | test("^(?:ba|da|a)?sh$"))
      then ($words | to_entries | map(select(.value | test("^-[a-z]*c$"))) | first | .key) as $flag
           | [$words[$flag + 1:][] | select(. != "--")] | first // "" | script_end
    else empty
    end;

# A pod ends when its last container does. One that restarts its containers never ends: that is
# Kubernetes' rule (`Always`, and `OnFailure` for what fails), not a shortcut of ours.
def pod_end:
  (.spec.restartPolicy // "Always") as $policy
  | select($policy != "Always")
  | [.spec.containers[] | container_end] as $ends
  | select(($ends | length) == (.spec.containers | length))
  | {after: ([$ends[].after] | max), succeeds: ([$ends[].succeeds] | all)}
  | select(.succeeds or $policy == "Never");

# The time of the end, as KWOK wants it. An absolute time, because KWOK starts a relative delay
# anew whenever the pod is changed.
def end_time:
  pod_end.after as $after
  | (.status.conditions[] | select(.type == "controlplane.test/Started") | .message) as $started
  | ($started | sub("\\.[0-9]+"; "") | fromdate) as $whole
  | ($started | (capture("(?<fraction>\\.[0-9]+)").fraction // "0") | tonumber) as $fraction
  | ($whole + $fraction + $after) as $end
  | ((($end - ($end | floor)) * 1000 | floor) + 1000 | tostring | .[1:]) as $milliseconds
  | ($end | floor | todate | rtrimstr("Z")) + "." + $milliseconds + "Z";
