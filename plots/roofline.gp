# Kernels of a step under an accelerator's roof: gnuplot -c roofline.gp STYLE_FOLDER FORMAT TARGET DATA TITLE BANDWIDTH ROOFS
# DATA: FLOP a byte, FLOP/s, share of the kernels' time, backward, label. ROOFS: name and TFLOP/s, repeated.
format = ARG2; target = ARG3; wide = 1000; high = 560
load ARG1."/style.gp"
set title ARG5
set xlabel "work for each byte that has to move (FLOP/B)"
set ylabel "rate of the kernel (TFLOP/s)"
set logscale xy; log_x = 1; log_y = 1
set format x "%g"; set format y "%g"
set grid x y linecolor rgb "#dddddd" linetype 1 linewidth 1
set key outside right center reverse Left samplen 2 title "area: share of time"
bandwidth = ARG6 / 1e12  # TB/s
stats ARG4 skip 1 using 1 name "X" nooutput
stats ARG4 skip 1 using ($2/1e12) name "Y" nooutput
roofs = words(ARG7) / 2
highest = 0
do for [i=1:roofs] { highest = (word(ARG7, 2 * i) + 0 > highest ? word(ARG7, 2 * i) + 0 : highest) }
set xrange [X_min / 3:X_max * 4]
set yrange [Y_min / 3:highest * 1.6]
set ytics (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000)
set xtics (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000)
size_of(share) = 0.8 + 3.5 * sqrt(share)
plot for [i=1:roofs] (bandwidth * x < word(ARG7, 2 * i) + 0 ? bandwidth * x : word(ARG7, 2 * i) + 0) with lines linestyle 1 dashtype i title word(ARG7, 2 * i - 1)." peak, bandwidth", \
     ARG4 skip 1 using 1:($4 < 0.5 ? $2/1e12 : NaN):(size_of($3)) with points pointtype 7 pointsize variable linecolor rgb "#e08214" title "forward", \
     ARG4 skip 1 using 1:($4 > 0.5 ? $2/1e12 : NaN):(size_of($3)) with points pointtype 6 pointsize variable linewidth 2 linecolor rgb "#14365c" title "backward", \
     ARG4 skip 1 using 1:($2/1e12):5 with labels right offset -1.2, -0.6 font ",9" textcolor rgb "#222222" notitle
