# Memory of a GPU through one step, stacked: gnuplot -c memory.gp STYLE_FOLDER FORMAT TARGET DATA TITLE CAPACITY_BYTES
# DATA: time_ms, then bytes: weights, gradients, optimizer, activations, logits, gathered, workspace, context.
format = ARG2; target = ARG3; wide = 1000; high = 500
load ARG1."/style.gp"
set title ARG5
set xlabel "time since the step began (ms)"
set ylabel "memory of a GPU (GiB)"
gib = 1073741824.0
capacity = ARG6 / gib
stats ARG4 skip 1 using 1 nooutput
set key outside right center reverse Left samplen 1.5
set style fill solid 1 noborder
# From the bottom: what is there all the time.
array order[8] = [9, 2, 4, 3, 7, 5, 6, 8]
array names[8] = ["context", "weights", "optimizer", "gradients", "gathered weights", "activations", "logits", "workspace"]
top(n) = sum [i=1:n] column(order[i]) / gib
stats ARG4 skip 1 using (column(7)) name "GATHERED" nooutput
stats ARG4 skip 1 using (column(6)) name "LOGITS" nooutput
set xrange [0:STATS_max]
set yrange [0:*]
if (capacity > 0) { set yrange [0:capacity * 1.05] }
shown(n) = (n == 5 && GATHERED_max <= 0) || (n == 7 && LOGITS_max <= 0) ? 0 : 1
plot for [n = 8:1:-1] ARG4 skip 1 using 1:(shown(n) ? top(n - 1) : NaN):(top(n)) with filledcurves linestyle 30 + n title (shown(n) ? names[n] : ""), \
     '' skip 1 using 1:(top(8)) with lines linestyle 1 linewidth 1 notitle, \
     (capacity > 0 ? capacity : NaN) with lines linestyle 6 title (capacity > 0 ? "what the GPU has" : "")
