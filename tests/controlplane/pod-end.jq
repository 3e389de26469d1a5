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

# So many seconds after a time as the stages write it, as KWOK wants it. An absolute time, because
# KWOK starts a relative delay anew whenever the pod is changed.
def later($began; $seconds):
  ($began | sub("\\.[0-9]+"; "") | fromdate) as $whole
  | ($began | (capture("(?<fraction>\\.[0-9]+)").fraction // "0") | tonumber) as $fraction
  | ($whole + $fraction + $seconds) as $end
  | ((($end - ($end | floor)) * 1000 | floor) + 1000 | tostring | .[1:]) as $milliseconds
  | ($end | floor | todate | rtrimstr("Z")) + "." + $milliseconds + "Z";

def told($type): [.status.conditions[]? | select(.type == $type) | .message] | first;

def end_time: pod_end.after as $after | later(told("controlplane.test/Started"); $after);

# Init containers run one after the other, each for as long as its command sleeps. One that is no
# sleep is done at once: nothing runs, so nothing that it waits for would come.
def init_seconds:
  [.spec.initContainers[]? | select((.restartPolicy // "") != "Always") | container_end.after]
  | add // 0;

# Whether the init containers are still to begin. An annotation of the pod overrides them.
def begins_init:
  .metadata.annotations["controlplane.test/start-delay"] == null
  and init_seconds > 0
  and told("controlplane.test/Initializing") == null;

# When the containers start: a duration, a time, or null for the delay of all pods.
def start_time:
  .metadata.annotations["controlplane.test/start-delay"]
  // (told("controlplane.test/Initializing") as $began
      | if $began == null then null else later($began; init_seconds) end);

# What keeps the first container from running, as kubelet calls it.
def stuck: .metadata.annotations["controlplane.test/stuck"];

def waiting: .status.containerStatuses[0]?.state.waiting.reason // "";

# Whether kubelet may start the containers: for the first time, or after what kept them is gone.
def starts:
  stuck == null and (begins_init | not)
  and (.status.phase == "Pending"
       or (.status.phase == "Running" and waiting != "" and waiting != "PodInitializing"));

# Kubelet waits 10 s after the first crash, then twice as long each time, 300 s at most.
def crash_delay:
  ([.status.containerStatuses[0]?.restartCount // 1, 6] | min) as $count
  | ([10 * pow(2; $count - 1), 300] | min | tostring) + "s";
