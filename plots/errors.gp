# Predicted against measured, a row each: gnuplot -c errors.gp STYLE_FOLDER FORMAT TARGET DATA TITLE ROWS WIDEST BOUNDS
rows = int(ARG6); widest = real(ARG7); bounds = int(ARG8)
format = ARG2; target = ARG3; wide = 1000; high = 150 + 24 * rows
load ARG1."/style.gp"
categories = 2
set title ARG5
set xlabel "error of the simulated value against the measured one (%)"
set xrange [-widest:widest]
set yrange [0.2:rows + 0.8]
set border 1
unset ytics
set ytics scale 0
set grid x y linecolor rgb "#e4e4e4" linetype 1 linewidth 1
set arrow 1 from 0, graph 0 to 0, graph 1 nohead linecolor rgb "#444444" linewidth 1.2
set key tmargin right horizontal
# A row without a bound has an empty fifth column.
fitted(k, e) = strcol(k) eq "fitted" ? column(e) : NaN
predicted(k, e) = strcol(k) eq "predicted" ? column(e) : NaN
# Labels come with the first plot; it draws bounds only where there are some.
plot ARG4 skip 1 using (strlen(strcol(5)) > 0 ? -column(5) : NaN):1:(strlen(strcol(5)) > 0 ? 2 * column(5) : NaN):(0):ytic(2) \
       with vectors nohead linestyle 5 title (bounds > 0 ? "bound" : ""), \
     ARG4 skip 1 using (fitted(3, 4)):1 with points linestyle 3 title "fitted rows", \
     ARG4 skip 1 using (predicted(3, 4)):1 with points linestyle 4 title "predicted rows"
