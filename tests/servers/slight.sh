# The least server, for many at once: it answers `initialize` and `ping` and nothing else.
# Each argument is a habit of it.
leaves() { setsid sleep 1000 </dev/null >/dev/null 2>&1 & }
stays() { trap '' TERM HUP INT; stays=yes; }
say() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$1" "$2"; }
greet() {
    case $mood in
        refuses) say "$1" '"error":{"code":-32602,"message":"not with you"}' ;;
        exits) exit 3 ;;
        silent) : ;;
        *) say "$1" '"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"slight","version":"1"}}' ;;
    esac
}
for habit; do
    case $habit in
        leaves) leaves ;;
        stays) stays ;;
        *) mood=$habit ;;
    esac
done
while read -r line; do
    ident=${line#*\"id\":} ident=${ident%%[,\}]*}
    case $line in
        *'"method":"initialize"'*) greet "$ident" ;;
        *'"method":"ping"'*) say "$ident" '"result":{}' ;;
    esac
done
[ -z "$stays" ] || exec sleep 1000
