#!/bin/bash
# Measures a shard under load, with server and clients on one machine, for the figures in docs/speed.md.
#
#     cargo build --profile dist -p worldwire
#     crates/worldwire/benches/shard.sh [PROGRAM] [CLIENTS] [SECONDS]
#
# Everything, including the database, is in a temporary folder that is removed at the end. Set TMPDIR to
# choose the disk to measure.
set -euo pipefail

program=$(realpath "${1:-target/dist/worldwire}")
clients=${2:-2000}
seconds=${3:-20}
folder=$(mktemp -d)
server=
trap '[ -n "$server" ] && kill "$server" && wait "$server"; rm -rf "$folder"' EXIT
# Below the ports that the system assigns to clients.
port=$((20000 + RANDOM % 10000))
cd "$folder"
export WORLDWIRE_PASSWORD=secret
ulimit -n "$(ulimit -Hn)"

# The first start creates missing files and stores the options in the configuration.
"$program" serve uru shard --quiet --listen "127.0.0.1:$port" --status "127.0.0.1:$((port + 1))" > first.log 2>&1 &
server=$!
until [ -e shard/shard.sqlite ]; do sleep 0.2; kill -0 "$server" || { cat first.log; exit 1; }; done
sleep 2
kill "$server"; wait "$server"; server=
sed -i 's/^connections_per_address = .*/connections_per_address = 10000/' shard/shard.toml
mkdir -p shard/data/files/Big shard/data/secure/SDL
echo 'STATEDESC avatarPhysical { VERSION 1 VAR POINT3 position[1] }' > shard/data/secure/SDL/avatar.sdl
head -c 280000000 /dev/urandom > shard/data/files/Big/page.prp

"$program" serve uru shard --quiet > serve.log 2>&1 &
server=$!
until [ -e shard/admin.sock ]; do sleep 0.2; kill -0 "$server" || { cat serve.log; exit 1; }; done
echo secret > password
seq "$clients" | xargs -P 4 -I {} "$program" uru account add load-{} --shard shard --password-file password \
    --quiet > accounts.log 2>&1 || { cat accounts.log; exit 1; }
memory() { awk '/VmRSS/ { printf "%.0f MB", $2 / 1000 }' "/proc/$server/status"; }
client() { "$program" client uru shard --quiet "$@"; }
echo "a shard with $clients accounts and nobody there: $(memory)"

# Players are created in advance; each has a tree of 33 nodes.
client --account 'load-{}' --count "$clients" --seconds 0 \
    login + create-player 'Load {}' female + again > /dev/null
echo "the same with their players: $(memory)"

echo; echo "$clients clients that play and are idle:"
touch idle.err
"$program" client uru shard --account 'load-{}' --count "$clients" --seconds 15 \
    login + set-player 'Load {}' + again > idle.log 2> idle.err &
idle=$!
until grep -q 'clients connected' idle.err; do sleep 0.2; kill -0 "$idle" || { cat idle.err; exit 1; }; done
sleep 5
memory; echo
wait "$idle"
cat idle.log

echo; echo "150 avatars walk in one age, a step a second, 22,350 deliveries a second:"
cpu() { awk '{ print $14 + $15 }' "/proc/$server/stat"; }
ticks=$(getconf CLK_TCK)
before=$(cpu); begun=$(date +%s%N)
client --account 'load-{}' --count 150 --seconds "$seconds" \
    login + set-player 'Load {}' + enter city + again + walk 1
ended=$(date +%s%N)
echo "the shard took $(( ($(cpu) - before) * 100000000000 / ticks / (ended - begun) )) % of a core; $(memory)"

echo; echo "50 ages with 4 players each, who walk:"
for number in 1 2 3 4; do
    client --account "load-$number{}" --count 50 --seconds "$seconds" \
        login + set-player "Load $number{}" + init-age Hut {} + enter Hut {} + again + walk 1 \
        > "ages-$number.log" &
    walkers="${walkers:-} $!"
done
# shellcheck disable=SC2086 # One word for each.
wait $walkers
head -n 1 ages-1.log
grep -h delivery ages-?.log

echo; echo "500 ages that nobody is in any more:"
before=$(awk '/VmRSS/ { print $2 }' "/proc/$server/status")
seq 1001 1500 | sed 's/.*/init-age Hut &\nenter Hut &/' | sed '1i login\nset-player "Load 1"' > steps
client --account load-1 --script steps > steps.log
after=$(awk '/VmRSS/ { print $2 }' "/proc/$server/status")
echo "$(( (after - before) / 500 )) KiB each"

echo; echo "50 clients save a node again and again:"
client --account 'load-{}' --count 50 --seconds "$seconds" \
    login + set-player 'Load {}' + create-node NodeType=TextNote String64_1=Load + again \
    + save-node made Text_1=Shorah

echo; echo "one client logs in, plays, and fetches its vault of 36 nodes and its neighbours:"
client --account load-1 login + set-player 'Load 1' \
    + create-node NodeType=TextNote Text_1=1 + add-node player made \
    + create-node NodeType=TextNote Text_1=2 + add-node player made \
    + create-node NodeType=TextNote Text_1=3 + add-node player made > made.log
client --account load-1 --count 1 --seconds 10 \
    again + login + set-player 'Load 1' + vault + logout

echo; echo "one client downloads 280 MB:"
# The server packs the file for the first download.
client manifest Big > /dev/null
begun=$(date +%s%N)
client download Big game
ended=$(date +%s%N)
echo "$((280000000000 / (ended - begun))) MB/s, checked and written"
