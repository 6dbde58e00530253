# A node through one step, stacked: gnuplot -c step_power.gp STYLE_FOLDER FORMAT TARGET DATA TITLE
format = ARG2; target = ARG3; wide = 1000; high = 500
load ARG1."/style.gp"
set title ARG5
set xlabel "time since the step began (ms)"
set ylabel "DC power of a node (kW)"
set yrange [0:*]
stats ARG4 skip 1 using 1 nooutput
set xrange [0:STATS_max]
set key outside right center reverse Left samplen 1.5
# From the bottom: what is there all the time; on top what the step adds.
host(d) = column(7) / 1000
conversion(d) = host(0) + (column(6) + column(8)) / 1000
gaps(d) = conversion(0) + column(5) / 1000
moving(d) = gaps(0) + column(4) / 1000
memory(d) = moving(0) + column(3) / 1000
compute(d) = memory(0) + column(2) / 1000
set style fill solid 1 noborder
plot ARG4 skip 1 using 1:(memory(0)):(compute(0)) with filledcurves linecolor rgb "#1f3a5f" title "GPUs: compute", \
     '' skip 1 using 1:(moving(0)):(memory(0)) with filledcurves linecolor rgb "#e8b04a" title "GPUs: memory", \
     '' skip 1 using 1:(gaps(0)):(moving(0)) with filledcurves linecolor rgb "#3f9c8c" title "GPUs: communication", \
     '' skip 1 using 1:(conversion(0)):(gaps(0)) with filledcurves linecolor rgb "#f2d9a0" title "GPUs: gaps", \
     '' skip 1 using 1:(host(0)):(conversion(0)) with filledcurves linecolor rgb "#8a4a2f" title "conversion, links, fans", \
     '' skip 1 using 1:(0):(host(0)) with filledcurves linecolor rgb "#cfe3c1" title "host", \
     '' skip 1 using 1:(compute(0)) with lines linestyle 1 title "node"
